"""Install a browser where there is none: with Playwright, or with the system's package manager."""

import shutil
import subprocess
from collections.abc import Sequence

from edgekit.errors import MissingToolError
from edgekit.progress import Progress, silent
from edgekit.runners.browsers import CHROMIUM, Engine, apt_line, install_hint, is_root, playwright_command

_PLAYWRIGHT_SECONDS = 240
_APT_SECONDS = 600
_OUTPUT_LINES = 15


def install(engine: Engine = CHROMIUM, progress: Progress = silent) -> str:
    """Install a browser: with Playwright, or with apt where that fails and apt may be used. Return which way it was.

    For Firefox and WebKit apt comes first: users have the stock browser, and Playwright's WebKit needs many libraries.
    Raises MissingToolError with the last lines of every attempt when none worked.
    """
    attempts: list[str] = []
    ways: list[tuple[str, list[list[str]], float]] = [
        ("playwright", [playwright_command(engine)], _PLAYWRIGHT_SECONDS),
    ]
    prefix = _apt_prefix()
    if prefix is not None:
        apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
        packages = [*apt, "install", "-y", "--no-install-recommends", *engine.packages]
        ways.insert(1 if engine is CHROMIUM else 0, ("apt", [[*apt, "update"], packages], _APT_SECONDS))
    for way, commands, seconds in ways:
        problem = _run_all(commands, seconds, progress)
        if problem is None:
            return way
        attempts.append(problem)
    raise MissingToolError(
        f"No {engine.name} could be installed.\n\n" + "\n\n".join(attempts), hint=install_hint(engine)
    )


def install_packages(packages: Sequence[str], progress: Progress = silent) -> None:
    """Install Debian packages with apt. Raises MissingToolError with the line to type, where that cannot be done."""
    prefix, hint = _apt_prefix(), f"Run: {apt_line(tuple(packages))}"
    if prefix is None:
        raise MissingToolError("apt-get cannot be used here without a password, or is not there.", hint=hint)
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    commands = [[*apt, "update"], [*apt, "install", "-y", "--no-install-recommends", *packages]]
    problem = _run_all(commands, _APT_SECONDS, progress)
    if problem is not None:
        raise MissingToolError(f"apt-get could not install {', '.join(packages)}.\n\n{problem}", hint=hint)


def _apt_prefix() -> list[str] | None:
    """Return what stands before apt-get to use it without being asked for a password; None: it cannot be used."""
    if not shutil.which("apt-get"):
        return None
    if is_root():
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
