"""The runner on a real Chromium. The page is a tiny one that posts a record without running a model."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import tiny_bundle
from running import PROGRAM, killing, processes

from edgekit.bundle.open import Bundle
from edgekit.errors import MissingToolError, ParityError
from edgekit.runners import browsers, chromium
from edgekit.runners.page import Ask

pytestmark = pytest.mark.browser

SILENT = "console.log('starting'); await new Promise(() => {});"


def bundle_of(folder: Path, script: bytes) -> Bundle:
    return tiny_bundle.make(folder / "bundle", {"page.js": script})


def browsers_running() -> list[str]:
    return [line for line in processes().values() if "--remote-debugging" in line or "--type=" in line]


def test_the_record_that_the_page_posts_is_returned(tmp_path: Path) -> None:
    said: list[str] = []
    record = chromium.run(
        bundle_of(tmp_path, tiny_bundle.script()), Ask(), progress=lambda message, done=None: said.append(message)
    )
    array = record.cases[0].outputs[0].array
    assert array is not None and array.tolist() == [1, -2] and array.dtype == np.float32
    assert re.fullmatch("[0-9a-f]{16}", record.run)
    assert record.environment.cross_origin_isolated is True
    assert "Chrome/" in (record.environment.user_agent or "")
    assert any("replays" in message for message in said)
    assert browsers_running() == []


def test_what_is_asked_of_the_page_stands_in_its_address(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, SILENT.replace("'starting'", "location.search").encode())
    with pytest.raises(ParityError) as caught:
        chromium.run(bundle, Ask(cases=["a", "b"], variant="wasm", threads=2, repeats=7, timeout_seconds=5))
    asked = caught.value.message
    for part in ("parity=1", "run=", "repeats=7", "variant=wasm", "threads=2", "cases=a%2Cb", "placement=4"):
        assert part in asked


def test_a_page_that_never_answers_ends_at_the_limit_with_what_the_console_said(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(ParityError) as caught:
        chromium.run(bundle_of(tmp_path, f"setTimeout(() => null.x, 0); {SILENT}".encode()), Ask(timeout_seconds=4))
    assert time.monotonic() - started < 60
    assert "did not answer within 4 s" in caught.value.message
    assert "[log] starting" in caught.value.message
    assert "[uncaught]" in caught.value.message and "null" in caught.value.message
    assert "--timeout" in (caught.value.hint or "")
    assert browsers_running() == []


def test_a_page_that_never_answers_is_asked_how_far_it_has_come(tmp_path: Path) -> None:
    status = "document.body.innerHTML = '<p id=status-text>Compiling the runtime…</p>';"
    with pytest.raises(ParityError, match=r"within 4 s\. It stands at: Compiling the runtime…"):
        chromium.run(bundle_of(tmp_path, f"{status} {SILENT}".encode()), Ask(timeout_seconds=4))
    with pytest.raises(ParityError, match=r"within 3 s\. It is still empty\."):
        chromium.run(bundle_of(tmp_path / "empty", SILENT.encode()), Ask(timeout_seconds=3))


def test_a_page_that_blocks_the_browser_s_thread_ends_at_the_limit(tmp_path: Path) -> None:
    with pytest.raises(ParityError, match=r"did not answer within 2 s\. It does not react any more\."):
        chromium.run(bundle_of(tmp_path, b"for (;;) {}"), Ask(timeout_seconds=2))
    assert browsers_running() == []


def test_the_console_is_kept_within_bounds(tmp_path: Path) -> None:
    script = b"for (let n = 0; n < 60; n += 1) { console.log(`${n} ` + 'x'.repeat(5000)); }"
    with pytest.raises(ParityError) as caught:
        chromium.run(bundle_of(tmp_path, script), Ask(timeout_seconds=5))
    assert "[log] 59 " in caught.value.message and "[log] 5 " not in caught.value.message
    assert len(caught.value.message) < 20_000


@pytest.mark.parametrize(
    "before",
    [
        "await fetch('http://127.0.0.2:9/lib.js').catch(() => {});",
        "await import('https://cdn.example/ort.mjs').catch(() => {});",
        "new Image().src = 'http://127.0.0.2:9/pixel.png'; await new Promise((done) => setTimeout(done, 200));",
    ],
)
def test_a_page_that_loads_from_elsewhere_is_an_error_although_it_answers(tmp_path: Path, before: str) -> None:
    with pytest.raises(ParityError, match=r"load from elsewhere: http.*(127\.0\.0\.2|cdn\.example)"):
        chromium.run(bundle_of(tmp_path, tiny_bundle.script(before=before)), Ask(timeout_seconds=20))


def test_a_page_may_use_blobs_and_data_addresses(tmp_path: Path) -> None:
    before = (
        "await new Promise((done) => { const image = new Image(); image.onload = image.onerror = done;"
        " image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA='; });"
        " await new Promise((done) => { const image = new Image(); image.onload = image.onerror = done;"
        " image.src = URL.createObjectURL(new Blob(['<svg xmlns=\"http://www.w3.org/2000/svg\"/>'],"
        " { type: 'image/svg+xml' })); });"
    )
    chromium.run(bundle_of(tmp_path, tiny_bundle.script(before=before)), Ask(timeout_seconds=20))


def test_a_record_that_the_inbox_refuses_ends_the_wait_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ParityError, match="refused: This record is of another model"):
        chromium.run(bundle_of(tmp_path, tiny_bundle.script(model_hash="'0'.repeat(64)")), Ask(timeout_seconds=20))


def test_a_record_of_another_run_is_not_taken_for_the_one_that_is_awaited(tmp_path: Path) -> None:
    script = tiny_bundle.script().replace(b"query.get('run')", b"'another'")
    with pytest.raises(ParityError, match="did not answer"):
        chromium.run(bundle_of(tmp_path, script), Ask(timeout_seconds=2))


@pytest.mark.skipif(sys.platform != "linux", reason="finds the browser's processes in /proc")
@pytest.mark.parametrize(
    ("kind", "says"), [("--type=renderer", "tab crashed"), ("browser", "browser, or its tab, ended")]
)
def test_a_crash_is_told_from_silence(tmp_path: Path, kind: str, says: str) -> None:
    def those(line: str) -> bool:
        return "--type=" not in line and "--remote-debugging" in line if kind == "browser" else kind in line

    with killing(those) as hear, pytest.raises(ParityError, match=says):
        chromium.run(bundle_of(tmp_path, SILENT.encode()), Ask(timeout_seconds=30), progress=hear)
    assert browsers_running() == []


@pytest.mark.parametrize(("gpu", "software"), [("software", True)])
def test_the_software_adapter_is_reported_as_software(tmp_path: Path, gpu: str, software: bool) -> None:
    adapter = chromium.run(bundle_of(tmp_path, tiny_bundle.script()), Ask(), gpu="software").environment.adapter
    assert adapter is not None and adapter.software is software and adapter.architecture == "swiftshader"


def test_hardware_that_is_not_there_is_missing_and_not_replaced(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, tiny_bundle.script())
    adapter = chromium.run(bundle, Ask()).environment.adapter
    if adapter is not None and not adapter.software:
        pytest.skip("this machine has a GPU")
    with pytest.raises(MissingToolError, match="no GPU"):
        chromium.run(bundle, Ask(), gpu="hardware")


def test_a_browser_that_does_not_start_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match=r"/bin/true does not start"):
        chromium.run(bundle_of(tmp_path, b""), Ask(), browser_path=Path("/bin/true"))


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("whole_group", [True, False])
@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.2, 0.4, 0.7, 1.1])
def test_ctrl_c_while_the_browser_starts_ends_everything(tmp_path: Path, seconds: float, whole_group: bool) -> None:
    bundle = bundle_of(tmp_path, SILENT.encode())
    command = [sys.executable, "-c", PROGRAM, "chromium", str(bundle.folder)]
    pipes: dict[str, int] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        assert b"Starting" in process.stdout.readline()
        time.sleep(seconds)
        if whole_group:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_the_browser_and_leaves_nothing(tmp_path: Path, times: int) -> None:
    bundle = bundle_of(tmp_path, SILENT.encode())
    with tempfile.TemporaryDirectory(prefix="ek") as scratch:  # short: Chromium makes a socket in it
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "chromium", str(bundle.folder)],
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "TMPDIR": scratch},
        )
        with process:
            assert process.stdout is not None
            while b"replays" not in process.stdout.readline():
                assert process.poll() is None
            time.sleep(1)
            for _ in range(times):  # a terminal sends it to the whole group, and people press it twice
                os.killpg(process.pid, signal.SIGINT)
                time.sleep(0.05)
            assert process.wait(timeout=20) == 130
        assert list(Path(scratch).iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_a_browser_that_cannot_start_says_why_in_its_own_words(tmp_path: Path) -> None:
    broken = tmp_path / "chrome"
    broken.write_text("#!/bin/sh\necho 'chrome: error while loading shared libraries: libnss3.so' >&2\nexit 127\n")
    broken.chmod(0o755)
    with pytest.raises(MissingToolError, match=r"does not start: \n  chrome: error while loading .* libnss3\.so"):
        chromium.run(bundle_of(tmp_path, b""), Ask(), browser_path=broken)


def test_a_sandbox_that_the_system_forbids_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Here the tests run as root, to whom Chromium itself refuses the sandbox, in the same words.
    monkeypatch.setattr(browsers, "can_sandbox", lambda: True)
    chromium.run(bundle_of(tmp_path, tiny_bundle.script()), Ask())
