"""Copy a bundle to a device: what is there already is left, what broke off is gone on with."""

import shlex
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from edgekit.bundle.open import Bundle
from edgekit.errors import ParityError
from edgekit.progress import Progress
from edgekit.records import manifest as manifests
from edgekit.runners import programs

_SECONDS = 3600.0
_ECHO = "sftp> "


class Way(Protocol):
    """How a device is reached; see ``edgekit.runners.ssh.Place``."""

    @property
    def destination(self) -> str: ...

    @property
    def copied_to(self) -> str: ...

    @property
    def rsh(self) -> str: ...

    def ssh(self, command: str) -> list[str]: ...

    def sftp(self, batch: Path) -> list[str]: ...


def copy(way: Way, bundle: Bundle, folder: str, *, python: str, rsync: bool, progress: Progress) -> None:
    """Make ``folder``/bundle on the device the same as the bundle, but for wheels of other versions of Python.

    Raises ParityError with the last words of what could not copy.
    """
    tag = f"-cp{python.replace('.', '')}-"
    wanted = {
        entry.path: entry.sha256
        for entry in bundle.manifest.files
        if not entry.path.startswith("wheels/") or tag in entry.path
    }
    wanted[manifests.NAME] = bundle.manifest_sha256
    progress(f"Copying to {way.destination}")
    _run(way.ssh(f"mkdir -p {shlex.quote(folder)}/bundle"))
    if rsync:
        _rsync(way, bundle, folder, wanted)
    else:
        _sftp(way, bundle, folder, wanted)


def _rsync(way: Way, bundle: Bundle, folder: str, wanted: Iterable[str]) -> None:
    with tempfile.NamedTemporaryFile("w", prefix="edgekit-files-", encoding="utf-8") as listed:
        listed.write("\0".join(sorted(wanted)))
        listed.flush()
        # By contents, not times: a bundle that was built again has new times. --partial keeps what broke off.
        command = ["rsync", "--checksum", "--partial", "--perms", "--from0", f"--files-from={listed.name}"]
        _run([*command, "-e", way.rsh, f"{bundle.folder}/", f"{way.copied_to}:{folder}/bundle/"])


def _sftp(way: Way, bundle: Bundle, folder: str, wanted: dict[str, str]) -> None:
    """Send what differs; where the device has the beginning of a file, send the rest of it, and look again."""
    for append in (True, False):
        there = _hashes(way, folder)
        missing = [path for path, sha256 in sorted(wanted.items()) if there.get(path) != sha256]
        if not missing:
            return
        parents = {
            parent.as_posix()
            for path in missing
            for parent in Path(path).parents
            if parent.as_posix() != "." and not any(known.startswith(f"{parent}/") for known in there)
        }
        lines = [f"-mkdir {_quoted(f'{folder}/bundle/{parent}')}" for parent in sorted(parents)]
        for path in missing:
            # -a goes on where a file ends; only of one that is there and begins as ours does is that right.
            put = "-put -ap" if append and path in there else "put -p"
            here, place = _quoted(str(bundle.folder / path), glob=True), _quoted(f"{folder}/bundle/{path}")
            lines.append(f"{put} {here} {place}")
        with tempfile.NamedTemporaryFile("w", prefix="edgekit-sftp-", encoding="utf-8") as batch:
            batch.write("\n".join(lines) + "\n")
            batch.flush()
            _run(way.sftp(Path(batch.name)))
    there = _hashes(way, folder)
    wrong = [path for path, sha256 in wanted.items() if there.get(path) != sha256]
    if wrong:
        raise ParityError(f"{way.destination} has other files than were sent: {', '.join(wrong[:3])}.")


def _hashes(way: Way, folder: str) -> dict[str, str]:
    said = _run(way.ssh(f"cd {shlex.quote(folder)}/bundle && find . -type f -exec sha256sum -z {{}} +"))
    found = {}
    for entry in said.split("\0"):
        sha256, _, path = entry.strip("\n").partition("  ./")
        found[path] = sha256
    return found


def _quoted(path: str, *, glob: bool = False) -> str:
    """Quote a path for sftp's batch files, where what is sent is a pattern."""
    marks = '\\"*?[]' if glob else '\\"'
    return '"' + "".join(f"\\{character}" if character in marks else character for character in path) + '"'


def _run(command: list[str]) -> str:
    try:
        done = programs.run(command, seconds=_SECONDS)
    except TimeoutError as error:
        raise ParityError(f"Copying did not end: {error}.", hint="What was copied stays; run it again.") from error
    if done.returncode != 0:
        # sftp says again what it was told to do, which would be all of its last words.
        said = "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith(_ECHO))
        ended = f" (it was ended by signal {-done.returncode})" if done.returncode < 0 else ""
        raise ParityError(
            f"{command[0]} could not copy the bundle{ended}.{programs.last_words(said)}",
            hint="What was copied stays; run it again.",
        )
    return done.stdout
