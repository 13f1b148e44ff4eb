"""A Linux bundle as a Debian package, made with Debian's own tools: the same bundle gives the same bytes.

The bundle lies in /usr/lib, its configuration in /etc. The wheels stay wheels, because the device may have either of
several versions of Python; they are unpacked into /var/lib when the package is configured.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

import edgekit
from edgekit import render, resources
from edgekit.bundle import destination, titles
from edgekit.bundle.open import open_bundle
from edgekit.errors import EdgekitError, MissingToolError, UsageError
from edgekit.files import check_space
from edgekit.targets.load import Target

_SECONDS = 600
_TITLE_CHARACTERS = 60  # a line of a description has at most 80
MAGIC = b"!<arch>\n"  # of the ar format, which packages are
_ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64", "armv7l": "armhf"}
# Files carry the time of a release, and not that of the build, so that two builds are the same.
_TIME = 1767225600
_DATE = "Thu, 01 Jan 2026 00:00:00 +0000"
_NOT_SHIPPED = ("install.sh", "edgekit-run", "lib/install", "config.toml", "README.md")
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+~]*")
# The units of systemd lie here for dpkg of Debian 12 as of 13, where /lib is a link.
_UNITS = "usr/lib/systemd/system"


def require_tools() -> None:
    """Raise MissingToolError where Debian's tools are missing."""
    if shutil.which("dpkg-deb") is None:
        raise MissingToolError(
            "There is no dpkg-deb on this machine, which makes Debian packages.",
            hint="Install the package dpkg, or leave --deb out and copy the .tar.gz.",
        )


def check_version(version: str) -> None:
    """Raise UsageError for what is no version of a Debian package."""
    if not _VERSION.fullmatch(version):
        raise UsageError(
            f"'{version}' is no version of a Debian package.", hint="Digits first, then letters, digits and . + ~"
        )


def place(folder: Path, name: str, target: Target, version: str) -> Path:
    """Return where the package of the bundle in ``folder`` lies: beside it, named as Debian names packages."""
    return folder.with_name(f"edgekit-{name}_{version}_{_architecture(target)}.deb")


def check(path: Path, *, force: bool) -> None:
    """Raise UsageError when the package may not be written at ``path``.

    It is named after the model alone, so that of another board may lie there.
    """
    destination.check_beside(
        path, force=force, ours=is_package, elsewhere="Choose a place in another folder with -o, or another --title."
    )


def is_package(path: Path) -> bool:
    """Whether a file is a Debian package."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def write(folder: Path, target: Target, name: str, work: Path, *, version: str) -> Path:
    """Write the package of the bundle in ``folder`` into ``work``, where its parts lie as well; return where it is.

    Raises UsageError for an architecture that Debian does not have, OSError where a part cannot be written, LimitError
    where the disk was full for dpkg-deb, EdgekitError where that fails otherwise.
    """
    package = f"edgekit-{name}"
    root = work / "deb"
    inside = root / "usr" / "lib" / package
    bundle = open_bundle(folder, verify=False)
    for path in [*(entry.path for entry in bundle.manifest.files), "manifest.json"]:
        if not path.startswith(_NOT_SHIPPED):
            (inside / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / path, inside / path)
    context = {
        "package": package,
        "name": name,
        "title": titles.one_line(bundle.manifest.title)[:_TITLE_CHARACTERS],
        "version": edgekit.__version__,
        "debian_version": version,
        "architecture": _architecture(target),
        "maintainer": _maintainer(),
        "depends": depends(target.linux.pythons),
    }
    _lay_down(root, folder, package, context)
    _finish(root, context)
    wanted = place(folder, name, target, version)
    made = work / wanted.name
    _dpkg_deb(root, made, wanted)
    return made


def depends(pythons: Sequence[str]) -> str:
    """Say in Debian's words that Python must be of one of these versions: each gap between them is ruled out."""
    numbers = sorted(tuple(int(n) for n in python.split(".")) for python in pythons)
    ends = [(major, minor + 1) for major, minor in numbers]
    said = [f"python3 (>= {_text(numbers[0])})"]
    said += [
        f"python3 (<< {_text(end)}) | python3 (>= {_text(start)})"
        for end, start in zip(ends, numbers[1:], strict=False)
        if end != start
    ]
    return ", ".join(["libc6 (>= 2.28)", "libstdc++6", *said, f"python3 (<< {_text(ends[-1])})"])


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _architecture(target: Target) -> str:
    machine = target.linux.machine
    if machine not in _ARCHITECTURES:
        raise UsageError(f"Debian has no architecture for '{machine}'.", hint="Leave --deb out.")
    return _ARCHITECTURES[machine]


def _maintainer() -> str:
    """Name whoever builds the package, as Debian's tools do: DEBFULLNAME and DEBEMAIL."""
    name, mail = os.environ.get("DEBFULLNAME", "edgekit build"), os.environ.get("DEBEMAIL", "edgekit@edgekit.invalid")
    if not all(text.isprintable() and not set(text) & set("<>,\n") for text in (name, mail)):
        raise UsageError("DEBFULLNAME or DEBEMAIL holds what a package's control file cannot.")
    return f"{name} <{mail}>"


def _lay_down(root: Path, folder: Path, package: str, context: dict[str, Any]) -> None:
    """Write what a package has beside the bundle."""
    templates = resources.root("templates") / "linux" / "deb"

    def rendered(name: str) -> bytes:
        return render.render(templates, name, _unescaped(context)).encode()

    doc = f"usr/share/doc/{package}"
    changelog = (
        f"{package} ({context['debian_version']}) stable; urgency=medium\n\n"
        f"  * Built by edgekit {edgekit.__version__}.\n\n -- {context['maintainer']}  {_DATE}\n"
    )
    unit = (folder / "lib/install/service.in").read_text(encoding="utf-8")
    files = {
        f"usr/bin/{package}": rendered("launcher.j2"),
        f"etc/{package}.toml": (folder / "config.toml").read_bytes(),
        f"{_UNITS}/{package}.service": unit.replace("@PREFIX@/bin/edgekit-run", f"/usr/bin/{package}").encode(),
        f"{doc}/copyright": rendered("copyright.j2"),
        f"{doc}/changelog.gz": gzip.compress(changelog.encode(), 9, mtime=0),
        f"usr/share/man/man1/{package}.1.gz": gzip.compress(rendered("manual.1.j2"), 9, mtime=0),
        "DEBIAN/conffiles": f"/etc/{package}.toml\n".encode(),
        **{f"DEBIAN/{name}": rendered(f"{name}.j2") for name in ("postinst", "prerm", "postrm")},
    }
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    context["installed_kib"] = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024 + 1
    (root / "DEBIAN" / "control").write_bytes(rendered("control.j2"))


def _unescaped(context: dict[str, Any]) -> dict[str, Any]:
    # Nothing of it is HTML, in which "<" would be escaped. What is put in was checked: names, versions, an address.
    return {key: Markup(value) if isinstance(value, str) else value for key, value in context.items()}  # noqa: S704


def _finish(root: Path, context: dict[str, Any]) -> None:
    """Write the sums, and give every file its mode and the same time."""
    control = root / "DEBIAN"
    shipped = sorted(path for path in root.rglob("*") if path.is_file() and path.parent != control)
    sums = [
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(root)}\n"
        for path in shipped
    ]
    (control / "md5sums").write_text("".join(sums), encoding="utf-8")
    programs = {f"usr/bin/{context['package']}", "DEBIAN/postinst", "DEBIAN/prerm", "DEBIAN/postrm"}
    for path in [root, *root.rglob("*")]:
        runs = path.is_dir() or path.relative_to(root).as_posix() in programs
        path.chmod(0o755 if runs else 0o644)
        os.utime(path, (_TIME, _TIME))


def _dpkg_deb(root: Path, made: Path, wanted: Path) -> None:
    done = subprocess.run(
        # Little effort: nearly all of it is wheels, which are compressed.
        [
            shutil.which("dpkg-deb") or "dpkg-deb",
            "--root-owner-group",
            "-Zgzip",
            "-z1",
            "--build",
            str(root),
            str(made),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_SECONDS,
        check=False,
        text=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(_TIME), "LC_ALL": "C.UTF-8"},  # its words are read
    )
    if done.returncode != 0:
        check_space(wanted, done.stdout, made.parent)
        raise EdgekitError(f"dpkg-deb failed: {done.stdout.strip()[-500:]}")
