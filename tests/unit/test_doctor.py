import sys
from pathlib import Path

import pytest

from edgekit import doctor
from edgekit.doctor import BrowserReport, Probe, Report
from edgekit.records.run_record import Adapter
from edgekit.runners import browsers
from edgekit.runtime import cache
from edgekit.serve import app as serve_app

browser = pytest.mark.browser


@browser
def test_a_real_browser_is_asked_what_works() -> None:
    report = doctor.examine()
    assert report.has_browser
    probe = report.browsers[0].probes[0]
    assert report.browsers[0].version and report.browsers[0].problem is None
    assert probe.gpu == "auto"
    assert probe.cross_origin_isolated and probe.secure_context and probe.threads and probe.jspi
    assert probe.cores >= 1
    assert probe.adapter is not None and isinstance(probe.adapter.software, bool) and probe.adapter.features


@browser
def test_the_probe_sees_when_the_page_is_not_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    isolated = serve_app.create_static_app
    monkeypatch.setattr(serve_app, "create_static_app", lambda files: isolated(files, isolation=False))
    report = doctor.examine()
    probe = report.browsers[0].probes[0]
    assert not probe.cross_origin_isolated and not probe.threads
    assert any("not cross-origin isolated" in note for note in report.notes)


def test_a_browser_that_does_not_start_is_a_problem_and_not_the_end(tmp_path: Path) -> None:
    broken = tmp_path / "chrome"
    broken.write_text("#!/bin/sh\necho 'error while loading shared libraries: libnss3.so' >&2\nexit 127\n")
    broken.chmod(0o755)
    report = doctor.examine(broken)
    assert not report.has_browser
    assert "libnss3.so" in (report.browsers[0].problem or "")
    problem = next(problem for problem in report.problems if str(broken) in problem.what)
    assert "playwright install chromium" in problem.mend


def test_no_browser_at_all_is_a_problem_with_the_line_that_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.delenv(browsers.ENVIRONMENT_NAME, raising=False)
    report = doctor.examine()
    assert report.browsers == () and not report.has_browser
    problem = next(problem for problem in report.problems if "no Chromium" in problem.what)
    assert f"{sys.executable} -m playwright install chromium" in problem.mend


def test_a_runtime_that_is_not_cached_is_a_problem(own_cache: Path, tmp_path: Path) -> None:
    report = doctor.examine(tmp_path / "nowhere")
    assert report.runtime.state == "missing" and str(own_cache) in report.runtime.folder
    assert any(problem.mend == "edgekit runtime fetch" for problem in report.problems)


def test_a_runtime_that_was_changed_is_a_problem(own_cache: Path, tmp_path: Path) -> None:
    cached = cache.look()
    cached.folder.mkdir(parents=True)
    (cached.folder / cached.files[0].name).write_bytes(b"not it")
    report = doctor.examine(tmp_path / "nowhere")
    assert report.runtime.state == "changed"
    assert any("was changed" in problem.what for problem in report.problems)


def test_the_versions_of_everything_are_found(tmp_path: Path) -> None:
    report = doctor.examine(tmp_path / "nowhere")
    versions = {tool.name: tool.version for tool in report.tools}
    assert all(versions.values()), versions
    assert {"edgekit", "onnxruntime", "playwright", "node", "npm"} <= versions.keys()


def test_a_package_that_is_missing_is_a_problem_with_its_pip_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_PACKAGES", ("edgekit-no-such-package",))
    report = doctor.examine(tmp_path / "nowhere")
    problem = next(problem for problem in report.problems if "edgekit-no-such-package" in problem.what)
    assert problem.mend.startswith(sys.executable) and "pip install" in problem.mend


def _report(adapter: Adapter | None) -> Report:
    probe = Probe("auto", True, True, True, 2, True, adapter is not None, True, adapter)
    reports = (BrowserReport("chromium", "/usr/bin/chromium", "PATH", "1", (probe,)),)
    runtime = doctor.RuntimeReport("onnxruntime-web", "1", "/cache", "verified")
    return Report("", (), runtime, reports, (), doctor.notes(reports))


@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        (None, "no WebGPU adapter"),
        (Adapter("google", "swiftshader", "", "", True), "only a software WebGPU adapter"),
        (Adapter("nvidia", "ada", "", "", False), None),
    ],
)
def test_what_kind_of_adapter_there_is_is_said(adapter: Adapter | None, says: str | None) -> None:
    notes = _report(adapter).notes
    assert [says in note for note in notes] == [True] if says else notes == ()
