"""The Python packages that travel to Linux devices: pinned, fetched once with pip, kept in the cache, verified."""

import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache as remember
from pathlib import Path

from edgekit import resources, tables
from edgekit.errors import MissingToolError, UsageError
from edgekit.files import sha256_file, write_atomic
from edgekit.progress import Progress, silent
from edgekit.runtime import cache
from edgekit.targets.load import Target

_PIP_SECONDS = 600
_LINES = 8
# Dtypes that numpy does not have, and the package that brings them: it travels only with models that take or give such.
_DTYPE_PACKAGES = {"bfloat16": "ml-dtypes"}


@dataclass(frozen=True)
class Wheel:
    """A wheel, pinned. ``python``: the version that it is for, such as "3.11"; ``machine``: as ``uname -m`` says it."""

    package: str
    version: str
    python: str
    machine: str
    file: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Crash:
    """Versions of a package that crash on some processors; ``source``: where that was reported."""

    package: str
    versions: tuple[str, ...]
    cpus: tuple[str, ...]
    what: str
    source: str


@dataclass(frozen=True)
class Pinned:
    """``templates/linux/wheels.toml``."""

    wheel: tuple[Wheel, ...] = ()
    crash: tuple[Crash, ...] = ()


@remember
def pinned() -> Pinned:
    """Return the pins."""
    path = resources.root("templates") / "linux" / "wheels.toml"
    return tables.build(Pinned, tables.read(path), path.name)


def chosen(target: Target, pins: Pinned | None = None, *, dtypes: Collection[str] = ()) -> tuple[Wheel, ...]:
    """Return the wheels for a target: of its runtime, and numpy, for each of its versions of Python.

    ``dtypes``: those of the model's inputs and outputs; what numpy lacks of them brings a package of its own.

    Raises UsageError where a version of Python has none, or the only one crashes on the target's processor.
    """
    pins = pins or pinned()
    packages = [
        target.runtime.package,
        "numpy",
        *(_DTYPE_PACKAGES[dtype] for dtype in _DTYPE_PACKAGES if dtype in dtypes),
    ]
    found: list[Wheel] = []
    for python in target.linux.pythons:
        for package in packages:
            fitting = [
                wheel
                for wheel in pins.wheel
                if (wheel.package, wheel.python, wheel.machine) == (package, python, target.linux.machine)
            ]
            safe = [wheel for wheel in fitting if _crash(wheel, target.linux.cpu, pins) is None]
            if not safe:
                raise UsageError(
                    f"Target '{target.id}' has no wheel of {package} for Python {python} on {target.linux.machine}"
                    f"{_why(fitting, target.linux.cpu, pins)}.",
                    hint=f"There are wheels for: {_listed(pins)}.",
                )
            found.append(safe[-1])
    return tuple(found)


def _crash(wheel: Wheel, cpu: str, pins: Pinned) -> Crash | None:
    known = (crash for crash in pins.crash if crash.package == wheel.package and wheel.version in crash.versions)
    return next((crash for crash in known if cpu in crash.cpus), None)


def _why(fitting: Sequence[Wheel], cpu: str, pins: Pinned) -> str:
    for wheel in fitting:
        if crash := _crash(wheel, cpu, pins):
            return f": {wheel.version} fails on {cpu} with {crash.what} ({crash.source})"
    return ""


def _listed(pins: Pinned) -> str:
    return ", ".join(sorted({f"Python {wheel.python} on {wheel.machine}" for wheel in pins.wheel})) or "none"


def fetch(wheels: Sequence[Wheel], *, progress: Progress = silent) -> dict[str, Path]:
    """Return the place of each wheel in the cache, by file name; what is not there is fetched with pip.

    Raises MissingToolError with pip's last words where it cannot be fetched, or is another file than the pinned one.
    """
    folder = cache.folder() / "wheels"
    for python in dict.fromkeys(wheel.python for wheel in wheels):
        wanted = [one for one in wheels if one.python == python and not _is_there(folder / one.file, one)]
        if wanted:
            names = ", ".join(f"{one.package} {one.version}" for one in wanted)
            progress(f"Fetching {names} for Python {python}")
            _download(wanted, folder)
    return {wheel.file: folder / wheel.file for wheel in wheels}


def _is_there(path: Path, wheel: Wheel) -> bool:
    return path.is_file() and path.stat().st_size == wheel.bytes and sha256_file(path) == wheel.sha256


def _download(wheels: Sequence[Wheel], folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="edgekit-wheels-") as name:
        platforms = sorted({part for wheel in wheels for part in wheel.file[:-4].rsplit("-", 1)[1].split(".")})
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", wheels[0].python]
        command += [word for platform in platforms for word in ("--platform", platform)]
        command += ["--dest", name, *(f"{wheel.package}=={wheel.version}" for wheel in wheels)]
        said = _run(command)
        for wheel in wheels:
            got = Path(name) / wheel.file
            if not _is_there(got, wheel):
                what = "is not the pinned one" if got.is_file() else "did not come"
                raise MissingToolError(f"pip fetched {wheel.package} {wheel.version}: {wheel.file} {what}.{said}")
            with cache.writing():
                write_atomic(folder / wheel.file, got.read_bytes())


def _run(command: Sequence[str]) -> str:
    """Run pip; return its last words, to be put behind a sentence. Raises MissingToolError."""
    hint = "Run the command once while online: the wheels are then kept in the cache. (Their place: EDGEKIT_CACHE.)"
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PIP_SECONDS, check=False, text=True
        )
    except subprocess.TimeoutExpired as error:
        raise MissingToolError(f"pip did not finish within {_PIP_SECONDS} seconds.", hint=hint) from error
    lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()][-_LINES:]
    said = "".join(f"\n  {line}" for line in lines)
    if done.returncode != 0:
        if "No module named pip" in done.stderr:
            raise MissingToolError("This Python has no pip, which fetches the device's wheels.",
                                   hint=f"Install it: {sys.executable} -m ensurepip")  # fmt: skip
        raise MissingToolError(f"pip could not fetch the device's wheels. Its last words:{said}", hint=hint)
    return said
