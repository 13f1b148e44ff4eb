"""Data to stdout, talk to stderr, and no name from a model drives the terminal."""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time

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


def test_a_column_that_is_empty_in_every_row_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [console.Column("case"), console.Column("why weak", optional=True)]
    console.table("T", columns, [["a", ""], ["b", ""]])
    assert "why weak" not in capsys.readouterr().out
    console.table("T", columns, [["a", ""], ["b", "blind"]])
    assert "why weak" in capsys.readouterr().out


def test_a_long_line_breaks_between_words_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    line = "one word after another, and /a/path/that/is/longer/than/it"
    console.talk(line)
    assert capsys.readouterr().err == f"{line}\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    console.talk(f"{line}\nshort")
    assert capsys.readouterr().err == "one word after\nanother, and\n/a/path/that/is/longer/than/it\nshort\n"


def test_a_table_in_a_pipe_does_not_fold_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/".join(["folder"] * 100)
    console.table(f"In {path}", [console.Column("a"), console.Column("path")], [["1", path], ["2", "short"]])
    title, *rows = capsys.readouterr().out.splitlines()
    assert title == f"In {path}"
    assert sum(path in row for row in rows) == 1
    assert max(len(row) for row in rows) < len(path) + 20


NUMBERS = [["case-1", "1.23456e-06", "0.9999", "a sentence of several words"]]
WIDE = [
    console.Column("case"),
    console.Column("max abs", number=True),
    console.Column("cosine", number=True, spare=2),
    console.Column("why", spare=1),
]


def shown(columns: list[console.Column], rows: list[list[str]], width: int, monkeypatch: pytest.MonkeyPatch,
          capsys: pytest.CaptureFixture[str]) -> str:  # fmt: skip
    monkeypatch.setenv("COLUMNS", str(width))
    console.table("T", columns, rows)
    out = capsys.readouterr().out
    assert all(len(line.rstrip()) <= width for line in out.splitlines() if not line.startswith("Left out"))
    return out


@pytest.mark.parametrize(
    ("width", "left_out"),
    [(57, ""), (56, "cosine"), (49, "cosine"), (48, "cosine, why")],
)
def test_a_table_wider_than_columns_says_leaves_out_what_matters_least(
    width: int, left_out: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shown(WIDE, NUMBERS, width, monkeypatch, capsys)
    assert "case-1  1.23456e-06" in out
    said = f"Left out, for this terminal is too narrow: {left_out}.\n" if left_out else ""
    assert said in out and ("Left out" in out) == bool(left_out)


def test_sentences_wrap_between_words_and_numbers_never(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = [console.Column("why"), console.Column("n", number=True)]
    rows = [["some words that wrap", "1,234 567"]]
    out = shown(columns, rows, 20, monkeypatch, capsys)
    assert "1,234 567" in out and "that wrap" in " ".join(out.split())
    assert {"some", "words", "that", "wrap"} <= set(out.split())


@pytest.mark.parametrize("number", [True, False])
def test_at_no_width_is_a_letter_lost(
    number: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = [console.Column("case"), console.Column("output"), console.Column("max abs", number=True)]
    columns.append(console.Column("would pass at", number=number))
    rows = [["worst: samples.npz", "probabilities", "1.79e-07", "rel 0"], ["02-normal", "logits", "0", "rel 3e-07"]]
    words = {word for texts in ([column.title for column in columns], *rows) for text in texts for word in text.split()}
    for width in range(36, 80):
        assert words <= set(shown(columns, rows, width, monkeypatch, capsys).split()), width


def test_a_spare_column_has_a_heading_by_which_it_is_named_when_it_is_left_out() -> None:
    with pytest.raises(ValueError, match="needs a heading"):
        console.Column("", spare=1)


def test_where_even_words_would_break_each_row_is_a_block_with_every_column(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = [*WIDE[:3], console.Column("path", spare=1)]
    monkeypatch.setenv("COLUMNS", "18")
    console.table("T", columns, [["case-1", "1.23456e-06", "0.9999", "/a/long/path"]] * 2)
    block = "  case     case-1\n  max abs  1.23456e-06\n  cosine   0.9999\n  path     /a/long/path\n"
    assert capsys.readouterr().out == f"T\n\n{block}\n{block}\n"


def test_a_terminal_has_a_width_and_columns_of_nothing_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for nonsense in ("", "0", "wide", "-5"):
        monkeypatch.setenv("COLUMNS", nonsense)
        console.table("T", WIDE, [["x" * 300, "1", "2", "3"]])
        assert "x" * 300 in capsys.readouterr().out


def test_steps_are_a_line_each_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress(steps=True) as progress:
        progress("one")
        progress("two\x1b", 0.1)
        progress("two\x1b", 0.9)
        progress("one")
    assert capsys.readouterr() == ("", "one\ntwo\\x1b\none\n")


def test_progress_goes_on_after_a_step_that_reached_its_end() -> None:
    pty = pytest.importorskip("pty")
    code = (
        "import time; from edgekit import console\n"
        "with console.progress() as p:\n"
        "    p('first', 1.0); time.sleep(0.3); p('second'); time.sleep(1.3); p('third', 0.5); time.sleep(0.3)"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # the end of a pty is an error on Linux
            while part := os.read(ours, 65536):
                said += part
    os.close(ours)
    assert process.returncode == 0
    assert b"0:00:01" in said  # its clock and its spinner did not stop with the first step
    second = {line.split()[0] for line in re.findall(r"\S+ second", said.decode())}
    assert len(second) > 3


def test_what_is_soon_done_says_nothing_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress() as progress:
        progress("working", 0.5)
    assert capsys.readouterr() == ("", "")


class Heard:
    """Takes the place of stderr, and tells when something was written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.news = threading.Condition()

    def isatty(self) -> bool:
        return False

    def write(self, text: str) -> None:
        with self.news:
            self.lines.append(text)
            self.news.notify_all()

    def until(self, part: str) -> None:
        with self.news:
            assert self.news.wait_for(lambda: any(part in line for line in self.lines), timeout=60), self.lines


def test_long_work_writes_plain_lines_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    monkeypatch.setattr("sys.stderr", heard)
    for name, seconds in (("_QUIET_SECONDS", 0.02), ("_PACE_SECONDS", 0.04), ("_STILL_SECONDS", 0.08)):
        monkeypatch.setattr(console, name, seconds)
    with console.progress() as progress:
        progress("starting\x1b[2J")
        heard.until("starting\\x1b[2J\n")
        progress("working", 0.25)
        heard.until("working (25%)\n")
        heard.until("working (25%): still at it after 0 s\n")  # by itself, for the work says nothing
        assert threading.active_count() > 1
    assert not [one for one in threading.enumerate() if one.name == "progress"]
    assert not any("\x1b" in line or "\r" in line for line in heard.lines)


def test_many_steps_in_a_pipe_are_few_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(console, "_PACE_SECONDS", 3600.0)
    with console.progress() as progress:
        for number in range(1000):
            progress(f"step {number}")
            time.sleep(0.0001)
    assert len(capsys.readouterr().err.splitlines()) <= 1


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
