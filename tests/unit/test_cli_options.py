"""Options that read the same in every command: lists, values given once, and that they are light to import."""

import subprocess
import sys
from typing import Any

import click
import pytest

from edgekit.cli import main
from edgekit.cli.options import Listed, list_option, single_option
from edgekit.errors import UsageError


@click.command("try")
@list_option("--variant", "variants", item=click.STRING, metavar="ID[,ID]")
@list_option("--threads", item=click.IntRange(1, 64), metavar="N[,N]")
@single_option("--browser", default="chromium")
@single_option("--place")
def command(**values: Any) -> dict[str, Any]:
    return values


def read(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = command.main(list(arguments), standalone_mode=False)
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ("--variant", "a,b"),
        ("--variant", "a", "--variant", "b"),
        ("--variant", "a, b,a"),
        ("--variant=a", "--variant=b,a"),
    ],
)
def test_commas_and_repeating_an_option_mean_the_same(arguments: tuple[str, ...]) -> None:
    assert read(*arguments)["variants"] == ("a", "b")


def test_every_value_of_a_list_is_checked_wherever_it_stands() -> None:
    assert read("--threads", "1", "--threads", "2,4")["threads"] == (1, 2, 4)
    assert read()["threads"] == ()
    for wrong in ("0", "1,65", "1,,2"):
        with pytest.raises(click.BadParameter):
            read("--threads", "1", "--threads", wrong)


def test_an_option_of_one_value_refuses_a_second_one() -> None:
    assert (read()["browser"], read()["place"]) == ("chromium", None)
    assert read("--browser", "firefox", "--browser", "firefox")["browser"] == "firefox"
    with pytest.raises(UsageError, match="--place is given 2 times: a, b"):
        read("--place", "a", "--place", "b")


def test_no_command_takes_a_list_of_which_the_last_would_count() -> None:
    context = click.Context(main.cli)
    commands = [main.cli.get_command(context, name) for name in main.cli.list_commands(context)]
    assert len(commands) > 10
    nested = [sub for one in commands if isinstance(one, click.Group) for sub in one.commands.values()]
    for one in (*commands, *nested):
        for param in one.params if one else ():
            assert not isinstance(param.type, Listed) or param.multiple, param.name


def imported(module: str) -> set[str]:
    code = f"import sys, {module}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_shared_options_import_nothing_heavy() -> None:
    assert not {"numpy", "onnx", "PIL"} & imported("edgekit.cli.options")


def test_the_twin_the_options_of_golden_cases_do_which_is_why_they_stand_apart() -> None:
    assert {"numpy", "onnx", "PIL"} <= imported("edgekit.cli.case_options")
