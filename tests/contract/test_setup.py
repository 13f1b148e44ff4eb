"""The set-up script finds a Python, and where it cannot it says what to install. Run with a PATH of its own."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "venv"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell script")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with what the script calls and no Python, apt-get or sudo."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "id", "rm"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def add(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


# A real environment, only without pip, which takes most of the time.
PYTHON = f'[ "$1 $2" = "-m venv" ] && exec "{sys.executable}" -m venv --without-pip "$3"\nexec "{sys.executable}" "$@"'


def run(tools: Path, venv: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": str(tools)}
    return subprocess.run([str(SCRIPT), str(venv)], env=environment, capture_output=True, text=True, check=False)


def test_without_python_it_says_what_to_install(tools: Path, tmp_path: Path) -> None:
    done = run(tools, tmp_path / "venv")
    assert done.returncode == 1
    assert "error: edgekit needs Python 3.11 or newer" in done.stderr
    assert "hint: Install it with your package manager, for instance: apt-get install python3" in done.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize("script", ["exit 1", "exit 127"])
def test_a_python_that_is_old_or_does_not_run_is_passed_over(tools: Path, tmp_path: Path, script: str) -> None:
    add(tools, "python3.13", script)
    assert run(tools, tmp_path / "venv").returncode == 1
    add(tools, "python3", PYTHON)
    done = run(tools, tmp_path / "venv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "venv" / "bin" / "python").exists()


def test_without_the_venv_module_it_names_the_package(tools: Path, tmp_path: Path) -> None:
    add(tools, "python3", f'case "$2" in *ensurepip*) exit 1;; esac\n{PYTHON}')
    done = run(tools, tmp_path / "venv")
    assert done.returncode == 1
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"hint: Install it, for instance: apt-get install python{version}-venv" in done.stderr


def test_as_root_the_package_manager_brings_what_is_missing(tools: Path, tmp_path: Path) -> None:
    (tools / "id").unlink()
    add(tools, "id", "echo 0")
    mended = tmp_path / "mended"
    add(tools, "python3", f'case "$2" in *ensurepip*) [ -e "{mended}" ] || exit 1;; esac\n{PYTHON}')
    add(tools, "apt-get", f'[ "$1" = install ] && : > "{mended}"')
    done = run(tools, tmp_path / "venv")
    assert done.returncode == 0, done.stderr
    assert "with apt-get" in done.stderr


def test_the_continuous_integration_runs_the_command_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert script.rstrip().endswith("exec make test")
    assert "make test " in (ROOT / "README.md").read_text(encoding="utf-8")


def test_no_heading_of_make_is_cut_at_a_comma() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not here")
    shown = subprocess.run([make, "-n", "-B", "pytest"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert '"Tests: unit, contract, browser, real models, wheel"' in shown
    calls = re.findall(r"\$\(call heading,(.*)\)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    assert len(calls) > 8 and not [text for text in calls if "," in text.replace("$(,)", "")]
