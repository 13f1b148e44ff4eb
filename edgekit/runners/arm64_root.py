"""A root folder of Debian for arm64, made once: in it, programs of a 64-bit ARM device run on this machine.

debootstrap fetches Debian's packages and verifies them by Debian's keys; they are unpacked, not configured, which is
all that Python needs. QEMU runs the programs, and PRoot makes the folder their root without rights of an administrator.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekit.errors import MissingToolError, UsageError
from edgekit.files import replace_folder
from edgekit.progress import Progress, silent
from edgekit.runners import arm64_cpus
from edgekit.runners.browsers import apt_line, is_root
from edgekit.runtime import cache

MACHINE = "aarch64"
# By the name of Debian's release: its version of Python.
PYTHONS: Mapping[str, str] = {"bookworm": "3.11", "trixie": "3.13"}
DEFAULT = "bookworm"
PACKAGES = ("qemu-user-static", "proot", "debootstrap", "fakeroot", "debian-archive-keyring")
QEMU = ("qemu-aarch64-static", "qemu-aarch64")
_FORMAT = 1
_SECONDS = 900
_LINES = 8
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
_MIRROR = "EDGEKIT_DEBIAN_MIRROR"


@dataclass(frozen=True)
class Root:
    """A root folder. ``python``: its version of Python. ``emulated``: this machine's processor is another."""

    folder: Path
    suite: str
    python: str
    emulated: bool

    def command(
        self,
        words: Sequence[str],
        *,
        binds: Mapping[Path, str] | None = None,
        environment: Mapping[str, str] | None = None,
        cpu: str = "",
        as_root: bool = False,
    ) -> list[str]:
        """Return the command line that runs ``words`` in the root.

        ``binds``: folders of this machine, and where they lie there. ``environment``: all variables that it gets.
        ``cpu``: the processor that QEMU plays, one of ``arm64_cpus``; another, or "": all that it can. ``as_root``: it
        believes that it is the administrator.
        """
        line = [_need("proot"), "-r", str(self.folder), "-w", "/"]
        places = dict(binds or {})
        if self.emulated:
            line += ["-q", f"{_qemu()} -cpu {cpu}" if cpu in arm64_cpus.KNOWN else _qemu()]
            places |= arm64_cpus.files(cpu)
        line += ["-0"] if as_root else []
        for place in ("/proc", "/dev"):
            line += ["-b", place]
        for here, there in places.items():
            line += ["-b", f"{here}:{there}"]
        variables = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LC_ALL": "C.UTF-8",
            **(environment or {}),
        }
        return [*line, "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items()), *words]


def ensure(suite: str = DEFAULT, *, progress: Progress = silent) -> Root:
    """Return the root folder of a release of Debian from the cache; make it first where it is not there.

    Raises UsageError for another release, MissingToolError without the tools, or without a network to fetch it.
    """
    if suite not in PYTHONS:
        raise UsageError(f"There is no arm64 root of '{suite}'.", hint=f"Releases: {', '.join(PYTHONS)}.")
    _need("proot")
    emulated = platform.machine() != MACHINE
    if emulated:
        _qemu()
    place = cache.folder() / "arm64" / f"{suite}-{_FORMAT}"
    if not (place / "usr" / "bin" / f"python{PYTHONS[suite]}").is_file():
        for tool in ("debootstrap", "dpkg-deb", "tar", *(() if is_root() else ("fakeroot",))):
            _need(tool)
        progress(f"Making an arm64 root of Debian {suite} (once)")
        with cache.writing():
            replace_folder(place, lambda folder: _make(folder, suite))
    return Root(place, suite, PYTHONS[suite], emulated)


def which(tool: str) -> str | None:
    """Return the path of a program; those of the administrator count, too."""
    return shutil.which(tool) or shutil.which(tool, path="/usr/sbin:/sbin")


def _need(tool: str) -> str:
    path = which(tool)
    if path is None:
        raise MissingToolError(
            f"There is no {tool} on this machine, which emulated devices need.",
            hint=f"On Debian or Ubuntu: {apt_line(PACKAGES)}, or 'edgekit doctor --install --with emulated'. "
            "Or take a real device: --device ssh://USER@HOST",
        )
    return path


def _qemu() -> str:
    found = next((path for name in QEMU if (path := shutil.which(name))), None)
    return found or _need(QEMU[0])


def _make(folder: Path, suite: str) -> None:
    made = folder / "download"
    command = [_need("debootstrap"), "--arch=arm64", "--variant=minbase", "--foreign", "--include=python3", suite]
    command += [str(made), *([os.environ[_MIRROR]] if os.environ.get(_MIRROR) else [])]
    _run(command if is_root() else [_need("fakeroot"), *command])
    archives = sorted((made / "var" / "cache" / "apt" / "archives").glob("*.deb"))
    for name in ("bin", "sbin", "lib"):  # Debian's merged /usr: links, which unpacking must not replace
        (folder / "usr" / name).mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(f"usr/{name}")
    status = []
    for archive in archives:
        _unpack(archive, folder)
        status.append(_status(archive))
    for name in ("proc", "sys", "dev", "tmp", "root", "var/lib/dpkg/info", "var/lib/dpkg/updates"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    # dpkg believes that they are installed, so that it can install a package that depends on them.
    (folder / "var/lib/dpkg/status").write_text("\n".join(status), encoding="utf-8")
    (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", encoding="ascii")
    (folder / "etc/group").write_text("root:x:0:\n", encoding="ascii")
    (folder / "tmp").chmod(0o1777)
    shutil.rmtree(made)


def _unpack(archive: Path, folder: Path) -> None:
    with subprocess.Popen([_need("dpkg-deb"), "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE) as reader:
        _run(
            ["tar", "-x", "-C", str(folder), "--keep-directory-symlink", "--no-same-owner", "--exclude=./dev/*"], reader
        )
    if reader.returncode != 0:
        raise MissingToolError(f"dpkg-deb could not unpack {archive.name}.", hint="Run the command again.")


def _status(archive: Path) -> str:
    done = subprocess.run(
        [_need("dpkg-deb"), "--field", str(archive)], capture_output=True, check=False, text=True, timeout=_SECONDS
    )
    lines = done.stdout.splitlines()
    name = next(line for line in lines if line.startswith("Package:"))
    rest = [line for line in lines if not line.startswith("Package:")]
    return "\n".join([name, "Status: install ok installed", *rest, ""])


def _run(command: Sequence[str], source: "subprocess.Popen[bytes] | None" = None) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL if source is None else source.stdout,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise MissingToolError(f"{command[0]} did not finish within {_SECONDS} seconds.") from error
    if done.returncode != 0:
        said = "\n".join(f"  {line}" for line in done.stdout.strip().splitlines()[-_LINES:])
        raise MissingToolError(
            f"{Path(command[0]).name} could not make the arm64 root. Its last words:\n{said}",
            hint=f"It needs a network once. A mirror of Debian of your own: the variable {_MIRROR}.",
        )
