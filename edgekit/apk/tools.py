"""Debian's programs that make an APK without the Android SDK: where they are, and running one."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekit.errors import EdgekitError, MissingToolError

# What an APK is made of, and the Debian package that brings it. keytool comes with any Java.
PACKAGES = {
    "aapt2": "aapt",
    "smali": "libsmali-java",
    "zipalign": "zipalign",
    "apksigner": "apksigner",
    "keytool": "default-jre-headless",
}
FRAMEWORK_PACKAGE = "android-framework-res"
# Android's own resources, which a manifest's attributes and themes are looked up in.
_FRAMEWORK = Path("/usr/share/android-framework-res/framework-res.apk")
_SECONDS = 120


@dataclass(frozen=True)
class Tools:
    """Paths of the programs, by the names in ``PACKAGES``, and of Android's resources."""

    programs: Mapping[str, str]
    framework: Path


def find() -> Tools:
    """Return the tools. Raises MissingToolError that names every one that is missing, and the line that installs it."""
    found = {name: shutil.which(name) for name in PACKAGES}
    lacking = {PACKAGES[name]: name for name, path in found.items() if path is None}
    if not _FRAMEWORK.is_file():
        lacking[FRAMEWORK_PACKAGE] = _FRAMEWORK.name
    if lacking:
        raise MissingToolError(
            f"To make an APK, this machine lacks {', '.join(lacking.values())}.",
            hint=f"On Debian and Ubuntu: sudo apt-get install -y --no-install-recommends {' '.join(lacking)}",
        )
    return Tools({name: path for name, path in found.items() if path is not None}, _FRAMEWORK)


class ToolError(EdgekitError):
    """One of the programs refused what it was given; ``said``: its own words."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said


def run(tools: Tools, program: str, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run one of the programs and return what it wrote to stdout; see ``run_program``."""
    return run_program(tools.programs[program], *arguments, environment=environment)


def run_program(path: str, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run the program at ``path`` and return what it wrote to stdout.

    ``environment``: variables more for that program alone. Raises ToolError with the program's words when it fails.
    """
    program = Path(path).name
    command: Sequence[str] = [path, *map(str, arguments)]
    try:
        # Messages are read, so they must be of one language; the user's own options of Java may print more of them.
        variables = {**_without_java_options(), "LC_ALL": "C.UTF-8", **(environment or {})}
        done = capture(command, variables, seconds=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{program} could not be run: {error}", str(error)) from error
    if done.returncode != 0:
        said = "\n".join(f"{done.stdout}\n{done.stderr}".strip().splitlines()[-5:])
        raise ToolError(f"{program} failed (exit {done.returncode}): {said}", said)
    return done.stdout


def capture(
    command: Sequence[str], environment: Mapping[str, str], *, seconds: float, folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a program in ``folder`` (None: this one), and keep what it says as text, whatever bytes that has.

    ``environment``: all variables that it gets. Raises OSError where it cannot be run, subprocess.TimeoutExpired.
    """
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=seconds,
        check=False,
    )


def _without_java_options() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")}
