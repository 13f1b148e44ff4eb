"""A screen for a browser that cannot do without one: a virtual display of its own, or else the one of the desktop."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from edgekit.errors import MissingToolError
from edgekit.runners import browsers, processes

_START_SECONDS = 15.0
_SCREEN = "1280x1024x24"
_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY")


@asynccontextmanager
async def screen() -> AsyncIterator[dict[str, str]]:
    """Yield the environment of a program that shows windows; on a virtual display (Xvfb) no one sees them.

    Each run has a display of its own, whose number Xvfb chooses, so that runs side by side do not meet. Raises
    MissingToolError when there is neither Xvfb nor a desktop.
    """
    program = shutil.which("Xvfb")
    if program is None:
        if any(os.environ.get(name) for name in _VARIABLES):
            yield dict(os.environ)
            return
        raise MissingToolError(
            "WebKitGTK needs a display, and there is none here.",
            hint=f"Install a virtual one: '{browsers.apt_line(('xvfb',))}'.",
        )
    reading, writing = os.pipe()
    command = [program, "-displayfd", str(writing), "-screen", "0", _SCREEN, "-nolisten", "tcp", "-noreset"]
    with os.fdopen(reading, "rb") as stream:
        try:
            starting = processes.started(command, os.environ, keep_open=(writing,))
            async with starting:
                os.close(writing)
                writing = -1
                number = await _first_line(stream.fileno())
                if not number:
                    raise MissingToolError(
                        "The virtual display Xvfb does not start.", hint=f"Try it by hand: {' '.join(command[:1])} :99"
                    )
                yield {**_without_wayland(), "DISPLAY": f":{number}"}
        finally:
            if writing >= 0:
                os.close(writing)


def _without_wayland() -> dict[str, str]:
    """Return this environment without the desktop's own display, which a program would take first."""
    return {name: value for name, value in os.environ.items() if name not in _VARIABLES}


async def _first_line(descriptor: int) -> str:
    """Return the line that comes through a pipe; empty when it is closed, or nothing comes in time."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    os.set_blocking(descriptor, False)
    said = b""

    def read() -> None:
        nonlocal said
        chunk = os.read(descriptor, 64)
        said += chunk
        if (not chunk or b"\n" in said) and not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, read)
    try:
        async with asyncio.timeout(_START_SECONDS):
            await ready
    except TimeoutError:
        return ""
    finally:
        loop.remove_reader(descriptor)
    return said.decode(errors="replace").strip()
