"""The command line: find the command, run it, and turn every error into a message and an exit code.

The command modules are imported only when they are called, so that ``edgekit --help`` and shell completion stay fast.
Their one-line summaries stand here for the same reason; a contract test holds them equal to the commands' own.
"""

import errno
import importlib
import io
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from edgekit import __version__, console, files
from edgekit.errors import EdgekitError, LimitError, UsageError, did_you_mean

SUMMARIES: dict[str, str] = {
    "inspect": "Show what a model is: inputs, outputs, operators, weights.",
    "check": "Say what a target will refuse, run slowly or get wrong, node by node.",
    "trim": "Remove what the answers do not need, and prove that they stay the same.",
    "build": "Make a bundle that runs a model and can prove its answers.",
    "serve": "Serve a bundle's demo page on this machine.",
    "parity": "Replay a bundle's golden cases in a browser or on a device, and judge them.",
    "diagnose": "Find the node at which a failing bundle goes wrong in a browser, and what cures it.",
    "fuzz": "Look for wrong answers: random small models, desktop onnxruntime against a browser.",
    "repair": "Find the settings that make a failing bundle pass, prove them, and write them into it.",
    "conformance": "Run the operator tests of the onnx package in real browsers, beside the desktop.",
    "report": "Turn run records and verdicts into one HTML page.",
    "targets": "List the device targets, or show one.",
    "runtime": "Show or fetch the pinned onnxruntime-web, or measure what a build's functions are for.",
    "doctor": "Show what is installed: Chromium, Firefox, WebKit, GPU adapters, node, versions.",
    "demo": "Build, verify and measure the bundled sample model, for every web target.",
    "completion": "Print the shell completion script.",
}


class LazyGroup(click.Group):
    """A group whose commands are modules of ``edgekit.cli``, imported when first asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUMMARIES:
            return None
        module = importlib.import_module(f"edgekit.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in SUMMARIES:
            raise click.UsageError(f"No such command '{args[0]}'.{did_you_mean(args[0], SUMMARIES)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "--version", prog_name="edgekit")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def cli() -> None:
    """Ship an ONNX model to browsers and edge devices, with proof that it gives the same answers.

    \b
    Example:
      edgekit build model.onnx --target webgpu -o bundle
      edgekit parity bundle
      edgekit serve bundle
    """


class _Output(io.FileIO):
    """Where a command's words go. When they no longer can, the work goes on: ``problem`` says afterwards what it was.

    A build, or the verdict of a parity run, does not depend on whether somebody (head, less) reads to the end.
    """

    problem: OSError | None = None

    def write(self, data: Any, /) -> int:
        left = memoryview(data).cast("B")
        count = len(left)
        while left and self.problem is None:  # a pipe may take a part
            try:
                left = left[super().write(left) or 0 :]
            except OSError as error:
                self.problem = error
        return count


def _opened(stream: Any, descriptor: int) -> tuple[Any, _Output | None]:
    """Return a stream that takes everything, in the place of one that may be closed, full, or of another encoding."""
    if stream is None:  # it was closed before Python started
        return Path(os.devnull).open("w", encoding="utf-8"), None
    if not isinstance(stream, io.TextIOWrapper):
        return stream, None
    stream.reconfigure(errors="backslashreplace")  # a terminal or pipe that is not UTF-8 is no reason to fail
    if stream not in (sys.__stdout__, sys.__stderr__) or stream.isatty():
        return stream, None
    output = _Output(descriptor, "wb", closefd=False)
    # Without a buffer where Python was told so (PYTHONUNBUFFERED), as it does itself.
    sink: Any = output if stream.write_through else io.BufferedWriter(output)
    text = io.TextIOWrapper(
        sink,
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    return text, output


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit with the code of the result (see ``edgekit.errors``)."""
    for descriptor in range(3):  # else the next file to be opened takes the place of a closed one
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout, output = _opened(sys.stdout, 1)
    sys.stderr, _ = _opened(sys.stderr, 2)
    _interrupted_by_sigterm()
    code = run(sys.argv[1:] if argv is None else argv)
    sys.stdout.flush()
    if output is not None and output.problem is not None and output.problem.errno != errno.EPIPE:
        lost = LimitError(f"Not all of the output could be written: {output.problem.strerror}.")
        console.error(lost)
        code = code or lost.exit_code
    sys.exit(code)


def _interrupted_by_sigterm() -> None:
    """Have SIGTERM do what Ctrl-C does: browsers are closed and temporary folders removed before the process ends."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # who started it may want it ignored
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def run(argv: list[str]) -> int:
    """Run the command line and return the exit code. The one place where errors become messages."""
    debug = "--debug" in argv
    argv = [argument for argument in argv if argument != "--debug"]  # it may stand before or after the command
    try:
        result: Any = cli.main(args=argv, prog_name="edgekit", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        return 2
    except (click.Abort, KeyboardInterrupt) as stopped:
        console.talk(str(stopped.__cause__ or stopped) or "Stopped.")  # click puts its own in place of an interrupt
        return 130
    except EdgekitError as problem:
        if debug:
            traceback.print_exc()
        console.error(problem)
        return problem.exit_code
    except MemoryError as problem:
        if debug:
            traceback.print_exc()
        reason = f": {problem}" if str(problem) else ""
        limit = LimitError(
            f"This machine has not enough memory{reason}.", hint="Use smaller inputs, or a machine with more memory."
        )
        console.error(limit)
        return limit.exit_code
    except Exception as problem:
        if debug:
            traceback.print_exc()
        if isinstance(problem, FileNotFoundError) and _is_nowhere():
            gone = UsageError("The current folder does not exist any more.", hint="Change to another one, or 'cd .'.")
            console.error(gone)
            return gone.exit_code
        if isinstance(problem, OSError) and files.is_full_disk(problem):
            no_space = files.no_space(Path(problem.filename) if problem.filename else None)
            console.error(no_space)
            return no_space.exit_code
        console.error(
            EdgekitError(
                f"This is a bug in edgekit: {type(problem).__name__}: {problem}",
                hint="Run the command again with --debug and report what it prints.",
            )
        )
        return EdgekitError.exit_code
    return result if isinstance(result, int) else 0


def _is_nowhere() -> bool:
    """Return whether the current folder was removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False
