"""The command that measures the tables."""

from pathlib import Path

import pytest
from conformance_samples import relu, unknown

from edgekit import conformance_run
from edgekit.conformance import limits
from edgekit.conformance import table as tables
from edgekit.conformance.cases import Case
from edgekit.progress import Progress, silent


def small_suite(*, progress: Progress = silent) -> tuple[Case, ...]:
    return (relu(), unknown(), *limits.probes())


def test_the_command_writes_the_table_of_what_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(conformance_run, "suite", small_suite)
    conformance_run.main(["--variant", "cpu", "--output", str(tmp_path)])
    (path,) = tmp_path.iterdir()
    assert capsys.readouterr().out == f"wrote {path}\n"
    table = tables.read(path)
    assert table.runtime.package == "onnxruntime"
    assert table.look("", "Relu", 17, ["float32"]) == "passes"
    assert table.cases["unknown"][0] == "refused"
    first = path.read_bytes()
    conformance_run.main(["--variant", "cpu", "--output", str(tmp_path)])
    assert path.read_bytes() == first
    capsys.readouterr()


def test_a_variant_that_does_not_exist_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        conformance_run.main(["--variant", "wsam"])
    said = capsys.readouterr().err
    assert all(variant in said for variant in conformance_run.variants())


def test_the_desktop_comes_first_for_it_gives_the_answers() -> None:
    assert conformance_run.variants()[0] == conformance_run.DESKTOP
    assert len(conformance_run.variants()) == 4
