import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import tiny_bundle

from edgekit.cli.main import run
from edgekit.records import run_record

MAIN = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from edgekit.cli.main import main; main()"
)


@contextmanager
def server(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run ``edgekit serve`` as a process of its own, and end it however the test ends."""
    command = [sys.executable, "-c", MAIN, "serve", *arguments]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def post(url: str, document: bytes, tensors: bytes) -> int:
    parts = (("record", document), ("tensors", tensors))
    body = b"".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"; filename="blob"\r\n\r\n'.encode() + data + b"\r\n"
        for name, data in parts
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Origin": url.rstrip("/")}
    asked = urllib.request.Request(f"{url}records", body + b"--x--\r\n", headers)  # noqa: S310
    with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310
        return int(answer.status)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_it_says_where_it_is_takes_a_record_and_ends_cleanly_on_ctrl_c(tmp_path: Path) -> None:
    bundle = tiny_bundle.make(tmp_path / "bundle", title="tiny \x1b[31m<script>")
    with server(str(bundle.folder), "--port", "0") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("Serving tiny \\x1b[31m<script> at http://127.0.0.1:")
        url = first.split(" at ")[1].strip()
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
            assert answer.read() == tiny_bundle.PAGE
        document, tensors = run_record.to_files(tiny_bundle.record(bundle))
        assert post(url, json.dumps(document).encode(), tensors) == 201
        assert process.stderr is not None
        err = "".join(process.stderr.readline() for _ in range(3))
        process.send_signal(signal.SIGINT)
        out, last = process.communicate(timeout=20)
    assert process.returncode == 0
    assert (out, last) == ("", "Stopped.\n")
    kept = list((tmp_path / "bundle.records").glob("*/record.json"))
    assert len(kept) == 1
    assert f"Records go to {tmp_path / 'bundle.records'}" in err
    assert f"Record {kept[0].parent}: 1 of 1 cases done" in err
    assert f"Judge it: edgekit report {kept[0].parent} --bundle {bundle.folder}\n" in err
    assert "warning" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_json_names_the_addresses_and_other_machines_are_warned_of(tmp_path: Path) -> None:
    bundle = tiny_bundle.make(tmp_path / "bundle")
    everywhere = "0.0.0.0"  # noqa: S104
    asked = ["--port", "0", "--host", everywhere, "--json", "--records", str(tmp_path / "r")]
    with server(str(bundle.folder), *asked) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while lines[-1] != "}\n":
            lines.append(process.stdout.readline())
        document = json.loads("".join(lines))
        assert document["records"] == str(tmp_path / "r")
        port = urlsplit(document["urls"][0]).port
        assert document["urls"][0] == f"http://127.0.0.1:{port}/"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "neither WebGPU nor threads" in err and f"tcp:{port}" in err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_without_isolation_the_page_gets_no_threads(tmp_path: Path) -> None:
    bundle = tiny_bundle.make(tmp_path / "bundle")
    for arguments, expected in (([], "require-corp"), (["--no-isolation"], None)):
        with server(str(bundle.folder), "--port", "0", *arguments) as process:
            assert process.stdout is not None
            url = process.stdout.readline().split(" at ")[1].strip()
            with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
                assert answer.headers.get("Cross-Origin-Embedder-Policy") == expected


def test_a_port_in_use_is_exit_code_2_with_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tiny_bundle.make(tmp_path / "bundle")
    with server(str(bundle.folder), "--port", "0") as process:
        assert process.stdout is not None
        port = urlsplit(process.stdout.readline().split(" at ")[1].strip()).port
        assert run(["serve", str(bundle.folder), "--port", str(port)]) == 2
    err = capsys.readouterr().err
    assert f"Port {port} on 127.0.0.1 is in use." in err and "hint:" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "does not exist"),
        (["."], "is not a bundle"),
        (["bundle", "--port", "65536"], "--port"),
        (["bundle", "--host", "192.0.2.7"], "not an address of this machine"),
        (["bundle", "--records", "file"], "is a file"),
        ([], "Missing argument"),
    ],
)
def test_a_mistake_is_exit_code_2_in_words(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    tiny_bundle.make(tmp_path / "bundle")
    (tmp_path / "file").write_text("")
    assert run(["serve", *arguments]) == 2
    captured = capsys.readouterr()
    assert says in captured.err and "Traceback" not in captured.err
    assert captured.out == ""


def test_a_bundle_that_was_changed_is_not_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tiny_bundle.make(tmp_path / "bundle")
    (bundle.folder / "page.js").write_text("alert(1)")
    assert run(["serve", str(bundle.folder)]) == 2
    assert "page.js" in capsys.readouterr().err
