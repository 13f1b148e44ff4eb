"""Data to stdout, talk to stderr, and no name from a model drives the terminal."""

import json
import subprocess
import sys

import pytest

from edgekit import console
from edgekit.errors import UsageError
from edgekit.progress import silent

HOSTILE = "\x1b[2J\x9b31m\u202eevil\udc80\r"


def test_data_go_to_stdout_with_one_line_end(capsys: pytest.CaptureFixture[str]) -> None:
    console.data("a")
    console.data("b\n")
    assert capsys.readouterr() == ("a\nb\n", "")


def test_talk_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    console.talk("working")
    assert capsys.readouterr() == ("", "working\n")


def test_in_one_pipe_data_and_talk_keep_their_order() -> None:
    code = "from edgekit import console; console.data('1'); console.talk('2'); console.data('3'); console.talk('4')"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
    assert done.stdout.split() == [b"1", b"2", b"3", b"4"]


def test_an_error_says_what_was_wrong_and_then_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    console.error(UsageError("No such file.", hint="Check the path."))
    assert capsys.readouterr() == ("", "error: No such file.\n\nhint: Check the path.\n")


def test_an_error_without_a_hint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.error(UsageError("No such file."))
    assert capsys.readouterr().err == "error: No such file.\n"


def test_json_keeps_readable_text_and_escapes_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    console.data_json({"né": HOSTILE})
    text = capsys.readouterr().out
    assert '"né"' in text
    assert all(c.isprintable() or c == "\n" for c in text)
    assert json.loads(text) == {"né": HOSTILE}


def test_json_refuses_nan() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        console.data_json(float("nan"))


@pytest.mark.parametrize("say", [console.talk, lambda text: console.error(UsageError(text, hint=text))])
def test_control_characters_do_not_reach_the_terminal(say, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    say(HOSTILE)
    assert all(c.isprintable() or c == "\n" for c in capsys.readouterr().err)


def test_a_table_shows_plain_text_in_rows_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [console.Column("name"), console.Column("bytes", number=True)]
    console.table("Files [bold]", columns, [["[red]x[/red]", "1"], ["two\nlines", "12345"], [HOSTILE, "7"]])
    out, err = capsys.readouterr()
    assert err == ""
    assert "Files [bold]" in out
    assert "[red]x[/red]" in out
    assert "two\\nlines" in out
    assert all(c.isprintable() or c == "\n" for c in out)
    lines = out.splitlines()
    assert next(line for line in lines if "two" in line).rstrip().endswith("12345")


def test_a_table_in_a_pipe_does_not_fold_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/".join(["folder"] * 100)
    console.table(f"In {path}", [console.Column("a"), console.Column("path")], [["1", path], ["2", "short"]])
    title, *rows = capsys.readouterr().out.splitlines()
    assert title == f"In {path}"
    assert sum(path in row for row in rows) == 1
    assert max(len(row) for row in rows) < len(path) + 20


def test_progress_is_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress() as progress:
        assert progress is silent
        progress("working", 0.5)
    assert capsys.readouterr() == ("", "")


def test_progress_shows_on_a_terminal_and_then_goes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with console.progress() as progress:
        progress("\x1b[2Jreading [bold]", 0.5)
        progress("next")
    assert capsys.readouterr().out == ""


def test_silent_listens_to_nothing() -> None:
    silent("message")
    silent("message", 1.0)
