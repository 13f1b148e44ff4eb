"""The scripts of ``action.yml`` are run by bash: each command line that they make is one that edgekit takes.

``web/test/action.test.js`` reads the file as YAML. Here it is read by its layout, which that test keeps valid.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest

from edgekit.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "action.yml").read_text(encoding="utf-8")
STEPS = {
    name: textwrap.dedent(script)
    for name, script in re.findall(r"    - name: (.+)\n(?:      .*\n)*?      run: \|\n((?:        .*\n|\n)+)", TEXT)
}
BASH = shutil.which("bash") or "bash"
RECORDER = """#!{python}
import json, os, sys
with open(os.environ["TOLD"], "a") as told:
    told.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
print("said by", os.path.basename(sys.argv[0]))
sys.exit(int(os.environ["CODE"]))
"""


def run(step: str, folder: Path, *, code: int = 0, **variables: str) -> tuple[int, list[list[str]]]:
    """Run a step as the runner does, with programs that only note how they are called; return what they were given."""
    programs, told = folder / "programs", folder / "told"
    programs.mkdir()
    for name in ("edgekit", "python"):
        (programs / name).write_text(RECORDER.format(python=sys.executable), encoding="utf-8")
        (programs / name).chmod(0o755)
    names = re.findall(r"^        ([A-Z_]+): ", TEXT, re.M)
    environment = {
        **dict.fromkeys(names, ""),
        "OUTPUT": "out",
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "TOLD": str(told),
        "CODE": str(code),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[step]],
        env={**environment, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]


def parse(words: list[str]) -> dict[str, object]:
    """Let click parse the words after "edgekit"; nothing is run."""
    context = click.Context(cli, info_name="edgekit")
    command = cli.get_command(context, words[0])
    assert command is not None
    return command.make_context(command.name, words[1:], parent=context).params


def test_the_scripts_are_found() -> None:
    assert list(STEPS) == ["Install edgekit", "Build", "Parity"]
    assert sum(len(re.findall(r"\bedgekit [a-z]", script)) for script in STEPS.values()) == 3


def test_build_gets_the_model_its_samples_and_further_options(tmp_path: Path) -> None:
    samples, options = "a b.npz\n$(touch x).npz\n", "--no-strength  --title `id`\n--dim batch=1"
    code, ((program, *words),) = run(
        "Build", tmp_path, MODEL="-my model.onnx", TARGET="any", SAMPLES=samples, OPTIONS=options
    )
    assert (code, program) == (0, "edgekit")
    given = parse(words)
    assert given["model"] == Path("-my model.onnx") and given["output"] == Path("out/bundle") and given["force"]
    assert given["samples"] == (Path("a b.npz"), Path("$(touch x).npz"))
    assert given["no_strength"] and given["title"] == "`id`" and given["dims"] == (("batch", 1),)
    assert not (tmp_path / "x").exists()


def test_build_without_anything_that_may_be_left_out(tmp_path: Path) -> None:
    code, ((_, *words),) = run("Build", tmp_path, MODEL="m.onnx", TARGET="any")
    assert code == 0 and parse(words)["samples"] == ()


def test_parity_is_asked_for_every_combination_and_writes_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    wanted = {"BROWSERS": "chromium,firefox", "VARIANTS": "jspi,wasm", "THREADS": "1,2", "OPTIONS": "--soak 50"}
    code, ((_, *words),) = run("Parity", tmp_path, **wanted)
    given = parse(words)
    assert code == 0 and given["bundle"] == Path("out/bundle") and given["soak"] == 50
    assert [list(given[name] or ()) for name in ("browsers", "variants", "threads")] == [  # type: ignore[call-overload]
        ["chromium", "firefox"], ["jspi", "wasm"], [1, 2],
    ]  # fmt: skip
    kept = [
        f"${{{{ inputs.output }}}}/{Path(str(given[name])).name}" for name in ("report_file", "junit_file", "output")
    ]
    assert all(f"          {place}\n" in TEXT for place in kept)
    assert "said by edgekit" in (tmp_path / "summary").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", [0, 4, 6])
def test_the_exit_code_of_parity_is_that_of_the_step(code: int, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert run("Parity", tmp_path, code=code)[0] == code
    assert (tmp_path / "out" / "parity.txt").read_text(encoding="utf-8") == "said by edgekit\n"


def test_a_build_that_fails_ends_the_step(tmp_path: Path) -> None:
    assert run("Build", tmp_path, code=3, MODEL="m.onnx", TARGET="any")[0] == 3


@pytest.mark.parametrize(
    ("variables", "installed"),
    [
        ({}, "/action"),
        ({"VERSION": "0.1.0"}, "edgekit==0.1.0"),
        ({"VERSION": "0.1.0", "BROWSERS": "chromium,webkit"}, "edgekit[webkit]==0.1.0"),
        ({"SOURCE": "."}, "{here}"),
        ({"BROWSERS": "webkit"}, "/action[webkit]"),
    ],
)
def test_edgekit_is_installed_from_where_it_is_said(variables: dict[str, str], installed: str, tmp_path: Path) -> None:
    _, told = run("Install edgekit", tmp_path, ACTION="/action", **variables)
    assert told == [["python", "-m", "pip", "install", installed.format(here=tmp_path)]]


def test_browsers_are_installed_only_where_that_is_asked_for(tmp_path: Path) -> None:
    _, told = run("Install edgekit", tmp_path, ACTION="/action", INSTALL_BROWSERS="true")
    assert told[1][0] == "edgekit" and parse(told[1][1:])["install"]


def test_the_twin_an_option_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    _, ((_, *words),) = run("Parity", tmp_path, OPTIONS="--no-such-option")
    with pytest.raises(click.NoSuchOption):
        parse(words)
