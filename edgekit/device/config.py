"""What ``edgekit-run`` is told by its file ``config.toml``: how the session is created, and how requests are served."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from edgekit import tables
from edgekit.desktop.child import LEVELS
from edgekit.errors import UsageError, did_you_mean

NAME = "config.toml"
# What a mistake would be, and not a wish: a day for one inference, a body of 2 GiB.
_MOST = {
    "running": 256,
    "connections": 65_536,
    "request_bytes": 1 << 31,
    "request_seconds": 86_400.0,
    "run_seconds": 86_400.0,
}


@dataclass(frozen=True)
class Session:
    """``threads`` 0: as many as onnxruntime takes, or as there are ``cores``: those to run on; empty: any.

    ``optimization``: the level of graph optimization with which the session is created.
    """

    threads: int = 0
    cores: tuple[int, ...] = ()
    optimization: str = "all"


@dataclass(frozen=True)
class Server:
    """Where requests come in, and how much of them is taken.

    ``names``: by which clients may ask for it, besides the loopback ones, while ``host`` is a loopback address: a web
    page whose own name is made to lead here (DNS rebinding) is refused by that, so no name stands for any. ``running``:
    inferences at once; ``waiting``: requests that may wait for one, further ones are answered with 503.
    ``connections``: open at once. ``request_bytes``: the largest body. ``request_seconds``: how long a client may take
    to send a request, or to take its answer; ``run_seconds``: how long an inference may take.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    names: tuple[str, ...] = ()
    running: int = 1
    waiting: int = 16
    connections: int = 256
    request_bytes: int = 16 << 20
    request_seconds: float = 15.0
    run_seconds: float = 30.0


@dataclass(frozen=True)
class Config:
    """``config.toml``. What it leaves out has these defaults."""

    session: Session = field(default_factory=Session)
    server: Server = field(default_factory=Server)


def load(path: Path) -> Config:
    """Read a file. Raises UsageError for one that is not there, is no TOML, or says what cannot be."""
    config = tables.build(Config, tables.read(path, "Name the file with --config."), path.name)
    check(config, path.name)
    return config


def check(config: Config, file: str) -> None:
    """Raise UsageError for what cannot be. ``file``: what said it."""
    session, server = config.session, config.server
    if session.optimization not in LEVELS:
        raise UsageError(
            f"{file}: 'session.optimization' is '{session.optimization}'.{did_you_mean(session.optimization, LEVELS)}",
            hint=f"Levels: {', '.join(LEVELS)}.",
        )
    if not 0 <= session.threads <= 256 or any(core < 0 for core in session.cores):
        raise UsageError(f"{file}: 'session.threads' is 0 to 256, and no core has a number below 0.")
    _check_names(server, file)
    if not 0 <= server.port <= 65535:
        raise UsageError(f"{file}: 'server.port' is no port: {server.port}.")
    for key in _MOST:
        value, most = getattr(server, key), _MOST[key]
        if not 0 < value <= most:  # which NaN is not either
            raise UsageError(f"{file}: 'server.{key}' must be more than 0 and at most {most}, and is {value}.")
    if not 0 <= server.waiting <= 65_536:
        raise UsageError(f"{file}: 'server.waiting' must be 0 to 65536.")


def _check_names(server: Server, file: str) -> None:
    if not _is_name(server.host):
        raise UsageError(
            f"{file}: 'server.host' is no address: {json.dumps(server.host)[:80]}.",
            hint='This machine alone: "127.0.0.1". Every machine that reaches this one: "0.0.0.0".',
        )
    odd = [name for name in server.names if not _is_name(name) or "*" in name]
    if odd:
        raise UsageError(
            f"{file}: 'server.names' holds {json.dumps(odd[0])[:80]}, which is no name.",
            hint="Write each name out: one that stood for any would let every web page read the answers.",
        )


def _is_name(text: str) -> bool:
    """Whether a text can be a host's name or address."""
    try:
        encoded = text.encode("idna")
    except UnicodeError:
        return False
    return bool(encoded) and text.isprintable() and not any(c.isspace() for c in text)
