"""The browser engines: how their programs are called, where they are, and the settings they need here."""

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from edgekit.errors import MissingToolError

Gpu = Literal["auto", "software", "hardware"]
GPUS: tuple[str, ...] = get_args(Gpu)

ENVIRONMENT_NAME = "EDGEKIT_BROWSER"


@dataclass(frozen=True)
class Engine:
    """One browser engine. ``id`` is Playwright's word for it; ``variable``: names its program in the environment.

    ``programs``: their names on PATH, best first. ``places``: where installers of macOS and Windows put them, by
    ``sys.platform``. ``packages``: what apt installs so that it runs on a machine without a screen, GPU or desktop.
    """

    id: str
    name: str
    variable: str
    programs: tuple[str, ...]
    packages: tuple[str, ...]
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


CHROMIUM = Engine(
    id="chromium",
    name="Chromium",
    variable=ENVIRONMENT_NAME,
    programs=(
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "chrome",
        "microsoft-edge",
        "msedge",
    ),
    packages=("chromium",),
    places={
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
    },
)
FIREFOX = Engine(
    id="firefox",
    name="Firefox",
    variable="EDGEKIT_FIREFOX",
    programs=("firefox-esr", "firefox"),
    packages=("firefox-esr", "mesa-vulkan-drivers"),  # the second is WebGPU on the CPU
    places={
        "darwin": ("/Applications/Firefox.app/Contents/MacOS/firefox",),
        "win32": ("{ProgramFiles}/Mozilla Firefox/firefox.exe",),
    },
)
# WebKitGTK's driver brings the browser that it drives, MiniBrowser.
WEBKIT = Engine(
    id="webkit",
    name="WebKit",
    variable="EDGEKIT_WEBKIT",
    programs=("WebKitWebDriver",),
    packages=("webkit2gtk-driver", "xvfb"),
)
ENGINES = (CHROMIUM, FIREFOX, WEBKIT)

# A fresh profile that talks to no one.
_QUIET = (
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Firefox has WebGPU on Linux, but switched off and blocked for what it does not know, such as Mesa on the CPU.
_FIREFOX_PREFERENCES: dict[str, str | float | bool] = {
    "dom.webgpu.enabled": True,
    "gfx.webgpu.ignore-blocklist": True,
}
# Mesa's Vulkan on the CPU (lavapipe); naming it hides every other driver from the Vulkan loader.
_LAVAPIPE = "/usr/share/vulkan/icd.d"


@dataclass(frozen=True)
class Browser:
    """A browser's program, how it was found, and whether it is the build that Playwright made."""

    path: Path
    source: str
    playwrights_own: bool = False


def find(named: Path | None, playwright_path: Path | None, engine: Engine = CHROMIUM) -> Browser:
    """Return the browser to drive: the one ``named``, that of the engine's variable, Playwright's own, or one on PATH.

    ``playwright_path``: where Playwright would keep its own. Raises MissingToolError, with the line that installs one,
    when there is none, or when the one that was named is not there.
    """
    return found(named, playwright_path, engine)[0]


def found(named: Path | None, playwright_path: Path | None, engine: Engine = CHROMIUM) -> tuple[Browser, ...]:
    """Return every browser that ``find`` would choose from, best first; at least one. Raises like ``find``."""
    variable = os.environ.get(engine.variable)
    for path, source in ((named, "--browser-path"), (Path(variable) if variable else None, engine.variable)):
        if path is not None:
            program = _program(path, source, engine)
            own = playwright_path is not None and program.resolve() == playwright_path.resolve()
            return (Browser(program, source, own),)
    candidates = [(playwright_path, "playwright")]
    on_path = [(Path(place), "PATH") for place in map(shutil.which, engine.programs) if place]
    # Debian's "firefox" is a script that starts its "firefox-esr"; Chromiums of several names are several browsers.
    candidates += on_path if engine is CHROMIUM else on_path[:1]
    candidates += [(place, "installed") for place in _places(engine, sys.platform, os.environ)]
    browsers: dict[Path, Browser] = {}
    for path, source in candidates:
        if path is not None and _is_program(path):
            browsers.setdefault(path.resolve(), Browser(path, source, source == "playwright"))
    if not browsers:
        raise MissingToolError(f"There is no {engine.name} on this machine.", hint=install_hint(engine))
    return tuple(browsers.values())


def _program(path: Path, source: str, engine: Engine) -> Path:
    place = path if path.is_file() else Path(shutil.which(path) or path)
    if not _is_program(place):
        why = "is not a program" if path.exists() else "is not there"
        raise MissingToolError(
            f"The browser that {source} names {why}: {path}",
            hint=f"Name the program of {engine.name} ({engine.programs[0]}), or: {install_hint(engine)}",
        )
    return place


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _places(engine: Engine, platform: str, environment: Mapping[str, str]) -> list[Path]:
    places = []
    for place in engine.places.get(platform, ()):
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


def software_flags() -> tuple[str, ...]:
    """Return the flags alone that give a Chromium its WebGPU adapter on the CPU."""
    return tuple(flag for flag in flags("software") if flag not in _QUIET)


def preferences() -> dict[str, str | float | bool]:
    """Return what Firefox is started with: WebGPU on, its blocklist off."""
    return dict(_FIREFOX_PREFERENCES)


def vulkan(gpu: Gpu) -> dict[str, str]:
    """Return the environment that leaves the Vulkan loader no driver but the one on the CPU, when that is asked for.

    Firefox has no flag for it. Empty on a machine without that driver, or where any may be used.
    """
    drivers = sorted(Path(_LAVAPIPE).glob("lvp_icd*.json")) if gpu == "software" else []
    # VK_DRIVER_FILES is the name of today; older loaders know the other one alone.
    return dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), str(drivers[0])) if drivers else {}


def can_sandbox() -> bool:
    """Return whether Chromium's sandbox may be used: it refuses to run as root."""
    return not is_root()


def is_root() -> bool:
    """Return whether this process may do everything (never on Windows, which has no such user)."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def install_hint(engine: Engine = CHROMIUM) -> str:
    """Say in one line how to get the browser on this machine."""
    lines = [f"'{' '.join(playwright_command(engine))}'"]
    if shutil.which("apt-get"):
        lines.insert(0, f"'{apt_line(engine.packages)}'")
    return f"Run {' or '.join(lines)}, or name one with --browser-path."


def apt_line(packages: tuple[str, ...]) -> str:
    """Return the line that a person types to install Debian ``packages``."""
    return f"{'' if is_root() else 'sudo '}apt-get install -y {' '.join(packages)}"


def playwright_command(engine: Engine) -> list[str]:
    """Return the command that downloads Playwright's own build of a browser."""
    return [sys.executable, "-m", "playwright", "install", engine.id]
