"""A Raspberry Pi for tests: OpenSSH's server on loopback, with the emulated arm64 root behind it."""

import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgekit.files import sha256_file
from edgekit.runners.arm64_root import Root

_SECONDS = 10.0
# What moves files works on this machine's disk; everything else runs on the device.
_SHELL = """
import os, sys
asked, device, home = os.environ.get("SSH_ORIGINAL_COMMAND", ""), {device!r}, {home!r}
with open({log!r}, "a") as log:
    log.write(asked + "\\n")
os.chdir(home)
if asked.startswith("rsync --server"):
    os.execvp("sh", ["sh", "-c", asked])
if "sftp" in asked.split(" ")[0]:
    os.execv({sftp!r}, [{sftp!r}])
os.execvp(device[0], [*device, "/bin/sh", "-c", "cd /home/pi && " + asked])
"""


@dataclass(frozen=True)
class Pi:
    """A device. ``address``: for --device; ``config``: for EDGEKIT_SSH_CONFIG; ``log``: what it was asked."""

    address: str
    config: Path
    home: Path
    log: Path
    port: int

    @property
    def asked(self) -> list[str]:
        """Every command so far."""
        return self.log.read_text().splitlines() if self.log.exists() else []


def _sshd() -> str:
    return shutil.which("sshd") or "/usr/sbin/sshd"


def install(pi: Pi, bundle: Path, folder: str, python: str) -> None:
    """Lay down what the installer leaves, with the packages that ``running`` was given: to unpack them takes long."""
    prefix, there = pi.home / folder / "env", f"/home/pi/{folder}/env"
    packages = prefix / "venv" / "lib" / f"python{python}" / "site-packages"
    packages.parent.mkdir(parents=True)
    packages.symlink_to("/packages")
    (prefix / "venv" / "bin").mkdir()
    (prefix / "venv" / "bin" / "python3").symlink_to("/usr/bin/python3")
    (prefix / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    for part in ("model", "cases", "lib"):
        shutil.copytree(bundle / part, prefix / "bundle" / part)
    shutil.copy(bundle / "manifest.json", prefix / "bundle")
    shutil.copy(bundle / "config.toml", prefix)
    (prefix / "bin").mkdir()
    runner = (bundle / "lib/install/edgekit-run.in").read_text().replace("@PREFIX@", there)
    (prefix / "bin" / "edgekit-run").write_text(runner)
    (prefix / "bin" / "edgekit-run").chmod(0o755)
    (prefix / ".installed").write_text(f"{sha256_file(bundle / 'manifest.json')} python{python}")


@contextmanager
def running(folder: Path, root: Root, *, rsync: bool = True, packages: Path | None = None) -> Iterator[Pi]:
    """Start the server, and yield the device. ``packages``: what lies in its folder /packages."""
    home, log = folder / "home", folder / "asked.txt"
    home.mkdir(parents=True)
    for name in ("host", "user", "stranger"):
        subprocess.run(
            [shutil.which("ssh-keygen") or "", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    hidden = {} if rsync else {"PATH": "/usr/bin"}
    binds = {home: "/home/pi", **_programs(folder, rsync), **({} if packages is None else {packages: "/packages"})}
    device = root.command([], binds=binds, environment={"HOME": "/home/pi", **hidden}, as_root=True)
    program = folder / "shell.py"
    program.write_text(_SHELL.format(device=device, home=str(home), log=str(log), sftp="/usr/lib/openssh/sftp-server"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host'}\nPidFile none\nStrictModes no\n"
        f"AuthorizedKeysFile {folder / 'authorized'}\nPermitRootLogin yes\nPubkeyAuthentication yes\nUsePAM no\n"
        "PasswordAuthentication yes\nSubsystem sftp /usr/lib/openssh/sftp-server\n"
        f"ForceCommand {shlex.join([sys.executable, str(program)])}\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    with (folder / "sshd.log").open("wb") as said:
        command = [_sshd(), "-D", "-e", "-f", str(folder / "sshd_config")]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
    try:
        _wait(port, server)
        yield Pi(f"ssh://127.0.0.1:{port}", config(folder, port), home, log, port)
    finally:
        server.terminate()
        server.wait(_SECONDS)


def _programs(folder: Path, rsync: bool) -> dict[Path, str]:
    """Give the device an rsync to find: what runs in its place is this machine's."""
    if not rsync:
        return {}
    (folder / "rsync").write_text("#!/bin/sh\nexit 1\n")
    (folder / "rsync").chmod(0o755)
    return {folder / "rsync": "/usr/bin/rsync"}


def config(folder: Path, port: int, *, key: str = "user", known: str = "host") -> Path:
    """Write a configuration of ssh that knows one host key and one of ours; return its place."""
    (folder / f"known-{known}").write_text(
        f"[127.0.0.1]:{port} {(folder / f'{known}.pub').read_text()}" if known else ""
    )
    place = folder / f"config-{key}-{known}"
    place.write_text(
        f"IdentityFile {folder / key}\nIdentitiesOnly yes\nUserKnownHostsFile {folder / f'known-{known}'}\n"
        "GlobalKnownHostsFile /dev/null\nIdentityAgent none\n"
    )
    return place


def _wait(port: int, server: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("sshd did not start")
