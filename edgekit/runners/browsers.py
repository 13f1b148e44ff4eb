"""Find a Chromium to drive, the flags it needs here, and install one where there is none."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from edgekit.errors import MissingToolError
from edgekit.progress import Progress, silent

Gpu = Literal["auto", "software", "hardware"]
GPUS: tuple[str, ...] = get_args(Gpu)

ENVIRONMENT_NAME = "EDGEKIT_BROWSER"

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge")
# Where the installers of macOS and Windows put browsers, which is not on PATH.
_PLACES = {
    "darwin": (
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    ),
    "win32": (
        "{ProgramFiles}/Google/Chrome/Application/chrome.exe",
        "{ProgramFiles(x86)}/Google/Chrome/Application/chrome.exe",
        "{LOCALAPPDATA}/Google/Chrome/Application/chrome.exe",
        "{ProgramFiles(x86)}/Microsoft/Edge/Application/msedge.exe",
    ),
}

# A fresh profile that talks to no one.
_QUIET = (
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PLAYWRIGHT_SECONDS = 240
_APT_SECONDS = 600
_OUTPUT_LINES = 15


@dataclass(frozen=True)
class Browser:
    """A browser's program, and how it was found."""

    path: Path
    source: str


def find(named: Path | None, playwright_path: Path | None) -> Browser:
    """Return the browser to drive: the one ``named``, that of EDGEKIT_BROWSER, Playwright's own, or one on PATH.

    ``playwright_path``: where Playwright would keep its own. Raises MissingToolError, with the line that installs one,
    when there is none, or when the one that was named is not there.
    """
    return found(named, playwright_path)[0]


def found(named: Path | None, playwright_path: Path | None) -> tuple[Browser, ...]:
    """Return every browser that ``find`` would choose from, best first; at least one. Raises like ``find``."""
    variable = os.environ.get(ENVIRONMENT_NAME)
    for path, source in ((named, "--browser-path"), (Path(variable) if variable else None, ENVIRONMENT_NAME)):
        if path is not None:
            return (Browser(_program(path, source), source),)
    candidates = [(playwright_path, "playwright")]
    candidates += [(Path(place), "PATH") for place in map(shutil.which, _NAMES) if place]
    candidates += [(place, "installed") for place in _places(sys.platform, os.environ)]
    browsers: dict[Path, Browser] = {}
    for path, source in candidates:
        if path is not None and _is_program(path):
            browsers.setdefault(path.resolve(), Browser(path, source))
    if not browsers:
        raise MissingToolError("There is no Chromium on this machine.", hint=install_hint())
    return tuple(browsers.values())


def _program(path: Path, source: str) -> Path:
    place = path if path.is_file() else Path(shutil.which(path) or path)
    if not _is_program(place):
        why = "is not a program" if path.exists() else "is not there"
        raise MissingToolError(
            f"The browser that {source} names {why}: {path}", hint=f"Name a Chromium's program, or: {install_hint()}"
        )
    return place


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _places(platform: str, environment: Mapping[str, str]) -> list[Path]:
    places = []
    for place in _PLACES.get(platform, ()):
        with suppress(KeyError):  # a variable that this machine does not have
            places.append(Path(place.format_map(environment)))
    return places


def flags(gpu: Gpu) -> list[str]:
    """Return Chromium's command-line flags.

    Measured on Chromium 156: without ``--enable-unsafe-webgpu`` a headless Linux gives no adapter at all; with it alone
    the browser takes a GPU where there is one and SwiftShader otherwise, so "auto" and "hardware" need one start only.
    """
    chosen = [*_QUIET, "--enable-unsafe-webgpu"]
    if gpu == "software":
        chosen.append("--use-webgpu-adapter=swiftshader")
    elif sys.platform == "linux":
        chosen.append("--enable-features=Vulkan")  # the only way to a GPU on Linux
    return chosen


def can_sandbox() -> bool:
    """Return whether Chromium's sandbox may be used: it refuses to run as root."""
    return not _is_root()


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def install_hint() -> str:
    """Say in one line how to get a browser on this machine."""
    lines = [f"'{' '.join(_playwright_command())}'"]
    if shutil.which("apt-get"):
        lines.insert(0, f"'{'' if _is_root() else 'sudo '}apt-get install -y chromium'")
    return f"Run {' or '.join(lines)}, or name one with --browser-path."


def _playwright_command() -> list[str]:
    return [sys.executable, "-m", "playwright", "install", "chromium"]


def install(progress: Progress = silent) -> str:
    """Install a Chromium: with Playwright, or with apt where that fails and apt may be used. Return which way it was.

    Raises MissingToolError with the last lines of every attempt when none worked.
    """
    attempts: list[str] = []
    ways: list[tuple[str, list[list[str]], float]] = [
        ("playwright", [_playwright_command()], _PLAYWRIGHT_SECONDS),
    ]
    prefix = _apt_prefix()
    if prefix is not None:
        apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
        ways.append(
            ("apt", [[*apt, "update"], [*apt, "install", "-y", "--no-install-recommends", "chromium"]], _APT_SECONDS)
        )
    for way, commands, seconds in ways:
        problem = _run_all(commands, seconds, progress)
        if problem is None:
            return way
        attempts.append(problem)
    raise MissingToolError("No browser could be installed.\n\n" + "\n\n".join(attempts), hint=install_hint())


def _apt_prefix() -> list[str] | None:
    """Return what stands before apt-get to use it without being asked for a password; None: it cannot be used."""
    if not shutil.which("apt-get"):
        return None
    if _is_root():
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:
        return [sudo, "-n"]
    return None


def _run_all(commands: Sequence[Sequence[str]], seconds: float, progress: Progress) -> str | None:
    """Run commands until one fails; return its last lines, or None when all were done."""
    for command in commands:
        shown = " ".join(command)
        progress(f"{shown}")
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
                encoding="utf-8",
                errors="replace",
            )
        except subprocess.TimeoutExpired as error:
            return f"$ {shown}\n{_tail(_text(error.output))}\n(stopped after {seconds:.0f} s)"
        except OSError as error:
            return f"$ {shown}\n{error}"
        if done.returncode != 0:
            return f"$ {shown}\n{_tail(done.stdout)}\n(exit code {done.returncode})"
    return None


def _text(output: bytes | str | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def _tail(output: str) -> str:
    return "\n".join(output.strip().splitlines()[-_OUTPUT_LINES:])
