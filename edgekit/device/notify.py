"""Tell systemd that the service is ready, alive, or stopping: its notify protocol, a datagram each."""

import os
import socket
from contextlib import suppress


def notify(text: str) -> bool:
    """Send ``text`` ("READY=1", "WATCHDOG=1", "STOPPING=1", "STATUS=..."); False where nobody listens."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place.startswith(("/", "@")):
        return False
    address = f"\0{place[1:]}" if place.startswith("@") else place
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto(text.encode(), address)
        return True
    return False


def watchdog_seconds() -> float | None:
    """Return how often the service must say that it is alive; None: nobody watches this process."""
    with suppress(ValueError):
        microseconds = int(os.environ.get("WATCHDOG_USEC", "0"))
        watched = os.environ.get("WATCHDOG_PID", str(os.getpid()))
        if microseconds > 0 and watched == str(os.getpid()):
            return microseconds / 1e6
    return None
