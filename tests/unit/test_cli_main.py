"""The one catch: every error becomes a message and an exit code, and only --debug shows a traceback."""

import errno
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from edgekit import __version__, errors
from edgekit.cli import main as cli_main
from edgekit.cli.main import run


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace the group by one whose only command raises what the test gives it."""

    def use(problem: BaseException | None, result: object = None) -> None:
        @click.group()
        def group() -> None: ...

        @group.command()
        def go() -> object:
            if problem is not None:
                raise problem
            return result

        monkeypatch.setattr(cli_main, "cli", group)

    return use


@pytest.mark.parametrize(
    "kind",
    [
        errors.EdgekitError,
        errors.UsageError,
        errors.BundleError,
        errors.ModelError,
        errors.MissingToolError,
        errors.LimitError,
        errors.ParityError,
    ],
)
def test_an_error_is_a_message_a_hint_and_its_code(
    failing: Any, kind: type[errors.EdgekitError], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(kind("It is broken.", hint="Mend it."))
    assert run(["go"]) == kind.exit_code
    assert capsys.readouterr() == ("", "error: It is broken.\n\nhint: Mend it.\n")


def test_a_bug_says_that_it_is_one_and_how_to_report_it(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failing(KeyError("x"))
    assert run(["go"]) == 1
    err = capsys.readouterr().err
    assert "This is a bug in edgekit: KeyError: 'x'" in err
    assert "--debug" in err
    assert "Traceback" not in err


def test_a_full_disk_is_no_bug_wherever_it_shows(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for problem in (
        OSError(errno.ENOSPC, "No space left on device", "somewhere"),
        shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")]),
    ):
        failing(problem)
        assert run(["go"]) == 5
        assert "error: The disk is full: " in capsys.readouterr().err
    failing(OSError(errno.EIO, "Input/output error"))
    assert run(["go"]) == 1


@pytest.mark.parametrize("argv", [["--debug", "go"], ["go", "--debug"]])
def test_debug_shows_the_traceback_wherever_it_stands(
    failing: Any, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    failing(errors.UsageError("It is broken."))
    assert run(argv) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("error: It is broken.\n")


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), click.Abort()])
def test_stopping_is_no_error(failing: Any, problem: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    failing(problem)
    assert run(["go"]) == 130
    assert capsys.readouterr().err.strip() == "Stopped."


@pytest.mark.parametrize(("result", "code"), [(None, 0), (0, 0), (6, 6), ("text", 0)])
def test_a_command_may_return_its_exit_code(failing: Any, result: object, code: int) -> None:
    failing(None, result)
    assert run(["go"]) == code


@pytest.mark.parametrize("argv", ["--help", "targets"])
def test_a_reader_that_left_hears_no_complaint(argv: str) -> None:
    command = [sys.executable, "-c", f"from edgekit.cli.main import main; main([{argv!r}])"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as stdout:
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_that_is_not_utf8_is_no_error() -> None:
    command = [sys.executable, "-c", "from edgekit.cli.main import main; main(['targets'])"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "wasm" in done.stdout


def test_main_exits_with_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli_main.main(["no-such-command"])
    assert caught.value.code == 2
    assert isinstance(sys.stdout, io.TextIOBase)


def test_a_command_that_is_not_there_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspct", "x"]) == 2
    assert "No such command 'inspct'. Did you mean 'inspect'?" in capsys.readouterr().err


def test_a_command_like_no_other_is_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["zzz"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"edgekit, version {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert "_EDGEKIT_COMPLETE" in capsys.readouterr().out


def test_completion_completes_commands() -> None:
    environment = os.environ | {"_EDGEKIT_COMPLETE": "bash_complete", "COMP_WORDS": "edgekit ta", "COMP_CWORD": "1"}
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'edgekit'; from edgekit.cli.main import main; main()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "targets" in done.stdout
    assert "inspect" not in done.stdout


def test_targets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["targets"]) == 0
    assert "onnxruntime-web" in capsys.readouterr().out


def test_an_unknown_target_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["targets", "show", "webgpuu"]) == 2
    assert "Did you mean 'webgpu'?" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["targets", "--json"], ["targets", "show", "wasm", "--json"]])
def test_json_goes_to_stdout_alone(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 0
    out, err = capsys.readouterr()
    assert out[0] in "[{"
    assert err == ""


def test_too_little_memory_is_a_limit_and_no_bug(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failing(MemoryError("Unable to allocate 7.28 TiB"))
    assert run(["go"]) == errors.LimitError.exit_code
    err = capsys.readouterr().err
    assert err.startswith("error: This machine has not enough memory: Unable to allocate 7.28 TiB.")
    assert "bug" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["parity", "bundle", "--timeout", "nan"],
        *(["build", "m.onnx", "-t", "wasm", "--image-scale", number] for number in ("nan", "inf", "-inf")),
        *(["build", "m.onnx", "-t", "wasm", "--image-mean", number] for number in ("nan", "0,inf", "")),
        *(["build", "m.onnx", "-t", "wasm", "--image-std", number] for number in ("nan,1,1", "-inf")),
    ],
)
def test_a_number_that_is_none_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert f"Invalid value for '{arguments[-2]}'" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be removed there")
def test_a_current_folder_that_is_gone_is_no_bug(
    failing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(FileNotFoundError(2, "No such file or directory"))
    assert run(["go"]) == 1
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    capsys.readouterr()
    assert run(["go"]) == 2
    assert capsys.readouterr().err.startswith("error: The current folder does not exist any more.")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_is_said_in_a_pipe_is_said_at_once(unbuffered: str) -> None:
    code = "import sys, os; from edgekit import console; from edgekit.cli import main\n"
    code += "main.run = lambda argv: (console.talk('said'), os.read(0, 1), 0)[-1]; main.main([])"
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None and process.stderr is not None
        assert process.stderr.readline() == b"said\n"
        process.stdin.close()
        assert process.wait() == 0


PROGRAM = "import sys; from edgekit.cli.main import main; main(sys.argv[1:])"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")  # noqa: PTH110
@pytest.mark.parametrize(("argv", "code"), [(["targets"], 5), (["targets", "--json"], 5), (["targets", "show"], 2)])
def test_a_full_disk_under_the_output_is_said_after_the_work(argv: list[str], code: int) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run([sys.executable, "-c", PROGRAM, *argv], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == code
    if code == 5:
        assert done.stderr == b"error: Not all of the output could be written: No space left on device.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="closes descriptors with a POSIX shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("argv", "code"), [(["targets"], 0), (["targets", "show", "no-such"], 2)])
def test_closed_streams_change_no_exit_code(closed: str, argv: list[str], code: int) -> None:
    command = ["sh", "-c", f'"$@" {closed}', "sh", sys.executable, "-c", PROGRAM, *argv]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
