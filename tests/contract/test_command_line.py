"""What holds for every command: help with an example, --json, a summary that is its own, and a fast start."""

import json
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from edgekit.cli.main import SUMMARIES, LazyGroup, cli, run

# What may not be loaded to show the help: each of these costs more than the help itself.
HEAVY = ("numpy", "onnx", "onnx_ir", "onnxruntime", "playwright", "flask", "PIL", "jinja2", "rich", "jsonschema")


def walk(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below, as it is called, and the command."""
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None
            below = click.Context(child, info_name=name, parent=ctx)
            yield below.command_path.removeprefix("edgekit "), child
            yield from walk(child, below)


COMMANDS = dict(walk(cli, click.Context(cli, info_name="edgekit")))


def test_the_summaries_are_the_commands_own() -> None:
    group = cli
    assert isinstance(group, LazyGroup)
    ctx = click.Context(group, info_name="edgekit")
    own = {}
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        own[name] = (command.help or "").strip().splitlines()[0]
    assert own == SUMMARIES


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), "--help"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"Usage: edgekit {name.split()[0]}")
    assert err == ""


@pytest.mark.parametrize("name", [name for name in COMMANDS if " " not in name])
def test_every_command_gives_an_example_that_calls_it(name: str) -> None:
    text = COMMANDS[name].help or ""
    _, found, example = text.partition("Example:")
    assert found, f"{name} has no example"
    assert f"edgekit {name}" in example


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "completion"])
def test_every_command_can_write_json(name: str) -> None:
    assert "--json" in {option for parameter in COMMANDS[name].params for option in parameter.opts}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts[0]} has no help"


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_is_a_usage_error_without_a_traceback(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), "--no-such-option"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "No such option" in err or "Missing argument" in err
    assert "Traceback" not in err


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules that a command line loads, in a fresh process."""
    code = (
        "import json, sys\nfrom edgekit.cli.main import run\n"
        f"code = run({list(arguments)!r})\nsys.stderr.write(json.dumps([code, sorted(sys.modules)]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stderr)
    assert code == 0
    return set(modules)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_the_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert not loaded_by(*(arguments or ["--help"])) & set(HEAVY)


def test_the_twin_a_command_that_works_loads_what_it_needs() -> None:
    assert "rich" in loaded_by("targets")
