"""Get a run record from a Linux device over ssh: copy what changed, install beside it, replay, bring the record back.

The device must be known: its host key is checked, and only keys log in. OpenSSH's own programs do all of it, with the
user's own configuration (or the file that EDGEKIT_SSH_CONFIG names).
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgekit.bundle.linux import slug
from edgekit.bundle.open import Bundle
from edgekit.errors import MissingToolError, ParityError, UsageError
from edgekit.progress import Progress, silent
from edgekit.records.run_record import RunRecord
from edgekit.runners import programs
from edgekit.runners.device_record import arguments, read_record
from edgekit.runners.page import Ask
from edgekit.runners.ssh_copy import copy
from edgekit.targets.options import LINUX

DEVICE = "ssh://[USER@]HOST[:PORT]"
DEVICE_KINDS = (LINUX,)
_ADDRESS = re.compile(
    r"ssh://(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@)?(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.%a-z]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)
_CONFIG = "EDGEKIT_SSH_CONFIG"
_OPTIONS = (
    "BatchMode=yes", "StrictHostKeyChecking=yes", "PasswordAuthentication=no", "KbdInteractiveAuthentication=no",
    "ConnectTimeout=15", "ServerAliveInterval=15", "ServerAliveCountMax=4",
)  # fmt: skip
_ASK_SECONDS = 120.0
_INSTALL_SECONDS = 900.0
_MOST_RECORD_BYTES = 1 << 30
_FAILED = 255  # what ssh itself ends with; anything else is the remote program's


@dataclass(frozen=True)
class Place:
    """How a device is reached. ``options``: of ssh, as words; sftp takes the same."""

    destination: str
    port: int | None
    options: tuple[str, ...]

    def ssh(self, command: str) -> list[str]:
        """Return the command line that runs a line of shell on the device."""
        port = ["-p", str(self.port)] if self.port else []
        return ["ssh", *self.options, *port, "--", self.destination, command]

    @property
    def copied_to(self) -> str:
        """The destination as rsync and sftp take it: to them a colon ends the host, unless brackets are around it."""
        user, at, host = self.destination.rpartition("@")
        return f"{user}{at}[{host}]" if ":" in host else self.destination

    @property
    def rsh(self) -> str:
        """What rsync calls in place of its own shell."""
        port = ["-p", str(self.port)] if self.port else []
        return shlex.join(["ssh", *self.options, *port])

    def sftp(self, batch: Path) -> list[str]:
        """Return the command line that does what is written in ``batch``."""
        port = ["-P", str(self.port)] if self.port else []
        return ["sftp", "-q", *self.options, *port, "-b", str(batch), "--", self.copied_to]


@dataclass(frozen=True)
class Found:
    """What the device says of itself."""

    machine: str
    python: str
    rsync: bool


def run_device(bundle: Bundle, ask: Ask, address: str, *, progress: Progress = silent) -> RunRecord:
    """Run the bundle on the device at ``address``, and return its record.

    Raises UsageError for what is no address, MissingToolError where the device cannot be reached, does not let us in,
    or cannot run this bundle, ParityError where it gave no record.
    """
    with reached(address) as place:
        progress(f"Asking {place.destination}")
        found = _look(place)
        folder = f".cache/edgekit/{slug(bundle.manifest.title)}-{bundle.manifest.target}"
        copy(place, bundle, folder, python=found.python, rsync=found.rsync, progress=progress)
        progress(f"Installing on {place.destination}")
        _install(place, folder)
        progress(f"Running on {place.destination}")
        return _replay(place, folder, ask)


@contextmanager
def reached(address: str) -> Iterator[Place]:
    """Yield how to reach the device; the connection that all commands share is closed at the end.

    Raises UsageError for what is no address, MissingToolError without OpenSSH.
    """
    if address in ("", "ssh"):
        raise UsageError("--device ssh needs to know which.", hint=f"Give {DEVICE}.")
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"] or 22) not in range(1, 65536):
        hint = "A password is not taken; log in with a key." if re.match(r"ssh://[^@/]*:[^@/]*@", address) else None
        raise UsageError(f"'{address}' is not {DEVICE}.", hint=hint or "Such as ssh://pi@raspberrypi.local")
    if shutil.which("ssh") is None:
        raise MissingToolError("There is no ssh on this machine.", hint="Install OpenSSH's client: openssh-client")
    host = match["host"].strip("[]")
    destination = f"{match['user']}@{host}" if match["user"] else host
    with tempfile.TemporaryDirectory(prefix="ek-", dir=_short_folder()) as name:
        config = ["-F", os.environ[_CONFIG]] if os.environ.get(_CONFIG) else []
        shared = ("ControlMaster=auto", f"ControlPath={name}/c", "ControlPersist=60")
        options = [*config, *(word for option in (*_OPTIONS, *shared) for word in ("-o", option))]
        place = Place(destination, int(match["port"]) if match["port"] else None, tuple(options))
        try:
            yield place
        finally:
            if (Path(name) / "c").exists():
                programs.run(["ssh", *options, "-O", "exit", "--", destination], seconds=_ASK_SECONDS)


def _short_folder() -> str | None:
    # The path of a socket may have 100 characters.
    return "/tmp" if Path("/tmp").is_dir() else None  # noqa: S108  a folder of its own is made in it


def _look(place: Place) -> Found:
    """Connect, and see what the device is. Raises MissingToolError."""
    line = (
        "uname -m; python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])' 2>/dev/null || echo none; "
        "command -v rsync >/dev/null 2>&1 && echo rsync || echo no"
    )
    code, said = remote(place, line, _ASK_SECONDS)
    if code != 0:
        raise MissingToolError(
            f"{place.destination} cannot be asked (exit code {code}).{programs.last_words(said)}",
            hint="A shell and python3 must be there.",
        )
    # What a login script prints comes before.
    machine, python, rsync = said.split()[-3:]
    if python == "none":
        raise MissingToolError(f"{place.destination} has no python3.", hint="Install it there: apt-get install python3")
    return Found(machine, python, rsync == "rsync" and shutil.which("rsync") is not None)


def _install(place: Place, folder: str) -> None:
    line = f'cd {shlex.quote(folder)} && sh bundle/install.sh --prefix "$PWD/env" --no-service'
    code, said = remote(place, line, _INSTALL_SECONDS)
    if code != 0:
        raise MissingToolError(f"{place.destination} cannot run this bundle.{programs.last_words(said)}")


def _replay(place: Place, folder: str, ask: Ask) -> RunRecord:
    words, run = arguments(ask)
    record = f"record-{run}"
    line = f"cd {shlex.quote(folder)} && env/bin/edgekit-run {shlex.join(words)} -o {record}"
    try:
        code, said = remote(place, line, ask.timeout_seconds)
    except TimeoutError:
        raise ParityError(
            f"{place.destination} did not finish within {ask.timeout_seconds:g} s.",
            hint="--timeout gives it more time.",
        ) from None
    with tempfile.TemporaryDirectory(prefix="edgekit-record-") as name:
        if code == 0:
            for file in ("record.json", "record.safetensors"):
                _fetch(place, f"{folder}/{record}/{file}", Path(name) / file)
        found = read_record(Path(name), run, code, said)
    remote(place, f"rm -rf {shlex.quote(f'{folder}/{record}')}", _ASK_SECONDS)
    return found


def _fetch(place: Place, there: str, here: Path) -> None:
    """Bring one file back, bounded in size. Raises ParityError."""
    line = f"head -c {_MOST_RECORD_BYTES + 1} {shlex.quote(there)}"
    with here.open("wb") as stream:
        done = subprocess.run(
            place.ssh(line), stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.PIPE, check=False,
            timeout=_INSTALL_SECONDS,
        )  # fmt: skip
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")
        raise ParityError(f"The record could not be brought back.{programs.last_words(said)}")


def remote(place: Place, line: str, seconds: float) -> tuple[int, str]:
    """Run a line of shell on the device; return its exit code and what it said.

    Raises MissingToolError where the device cannot be reached or does not let us in, TimeoutError.
    """
    done = programs.run(place.ssh(line), seconds=seconds)
    if done.returncode == _FAILED:
        raise unreachable(place, done.stdout)
    return done.returncode, done.stdout


def unreachable(place: Place, said: str) -> MissingToolError:
    """Return the error for what ssh said when it could not connect, with what to do."""
    name = place.destination
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in said:
        return MissingToolError(
            f"The host key of {name} is another one than before: it may be another machine, or somebody in between.",
            hint="If you set it up anew: ssh-keygen -R HOST, then log in once by hand and compare the fingerprint.",
        )
    if "Host key verification failed" in said or "No matching host key" in said:
        return MissingToolError(
            f"The host key of {name} is not known, so it is not trusted.",
            hint=f"Log in once by hand, and compare the fingerprint: ssh {_by_hand(place)}",
        )
    if "Permission denied" in said:
        return MissingToolError(
            f"{name} does not let us in: none of your keys is known there.",
            hint=f"Copy one: ssh-copy-id {_by_hand(place)}",
        )
    return MissingToolError(
        f"{name} cannot be reached.{programs.last_words(said)}", hint=f"Try it by hand: ssh {_by_hand(place)}"
    )


def _by_hand(place: Place) -> str:
    words: Sequence[str] = ["-p", str(place.port)] if place.port else []
    return shlex.join([*words, place.destination])
