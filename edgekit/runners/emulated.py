"""Get a run record from an arm64 Linux that this machine plays: see ``edgekit.runners.arm64_root``.

The bundle runs as it would on the device: its own runner, its own wheels, Debian's Python. The answers count; the times
are QEMU's, and the record says so.
"""

import re
import tempfile
from dataclasses import replace
from pathlib import Path

from edgekit.bundle import linux
from edgekit.bundle.open import Bundle
from edgekit.device import unpack
from edgekit.errors import BundleError, ParityError, UsageError
from edgekit.files import replace_folder, sha256_bytes
from edgekit.progress import Progress, silent
from edgekit.records.run_record import RunRecord
from edgekit.runners import arm64_root, programs
from edgekit.runners.device_record import arguments, read_record
from edgekit.runners.page import Ask
from edgekit.runtime import cache
from edgekit.targets.options import LINUX

DEVICE = "emulated[:RELEASE]"
DEVICE_KINDS = (LINUX,)
_ADDRESS = re.compile(r"emulated(?::(?P<release>[A-Za-z0-9-]+))?")


def run_device(bundle: Bundle, ask: Ask, address: str, *, progress: Progress = silent) -> RunRecord:
    """Run the bundle in an arm64 root of Debian, and return its record.

    Raises UsageError for a release of Debian that is not known, MissingToolError without the tools, ParityError where
    no record came.
    """
    root = arm64_root.ensure(release(address), progress=progress)
    packages = site_packages(bundle, root.python)
    progress(f"Running the bundle on an emulated {arm64_root.MACHINE}")
    with tempfile.TemporaryDirectory(prefix="edgekit-emulated-") as name:
        words, run = arguments(ask)
        command = root.command(
            ["/usr/bin/python3", "-m", "edgekit.device.main", "--bundle", "/bundle", *words, "-o", "/record"],
            binds={bundle.folder: "/bundle", packages: "/packages", Path(name): "/record"},
            environment={
                "PYTHONPATH": "/bundle/lib:/packages",
                # Beside the packages, or it would lie in the bundle, whose files are counted.
                "PYTHONPYCACHEPREFIX": "/packages/pyc",
            },
            cpu=linux.cpu(bundle),
        )
        try:
            done = programs.run(command, seconds=ask.timeout_seconds)
        except TimeoutError:
            raise ParityError(
                f"The emulated device did not finish within {ask.timeout_seconds:g} s.",
                hint="--timeout gives it more time.",
            ) from None
        record = read_record(Path(name), run, done.returncode, done.stdout)
    return replace(record, environment=replace(record.environment, emulated=root.emulated))


def release(address: str) -> str:
    """Return the release of Debian that an address asks for. Raises UsageError for what is no such address."""
    match = _ADDRESS.fullmatch(address or "emulated")
    if match is None:
        raise UsageError(
            f"'{address}' is not {DEVICE}.",
            hint=f"Releases: {', '.join(arm64_root.PYTHONS)}; 'emulated' alone takes {arm64_root.DEFAULT}.",
        )
    return match["release"] or arm64_root.DEFAULT


def site_packages(bundle: Bundle, python: str) -> Path:
    """Return a folder with the bundle's wheels unpacked, from the cache where it is there already.

    Raises BundleError for a bundle without wheels for this version of Python.
    """
    tag = f"-cp{python.replace('.', '')}-"
    hashes = [entry.sha256 for entry in bundle.manifest.files if entry.path.startswith("wheels/") and tag in entry.path]
    if not hashes:
        raise BundleError(
            f"The bundle has no wheels for Python {python}.", hint="Take another release: --device emulated:RELEASE"
        )
    place = cache.folder() / "arm64" / "packages" / sha256_bytes("".join(sorted(hashes)).encode())[:16]
    if not place.is_dir():

        def fill(folder: Path) -> None:
            if unpack.main(bundle.folder, folder / "new", python) != 0:
                raise BundleError("The bundle's wheels cannot be unpacked.", hint="Build the bundle again.")
            for path in (folder / "new").iterdir():
                path.rename(folder / path.name)
            (folder / "new").rmdir()

        with cache.writing():
            replace_folder(place, fill)
    return place
