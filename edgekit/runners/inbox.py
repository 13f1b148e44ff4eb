"""Obtain a run record from a device that nobody drives: someone opens an address on it, and its page posts back."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from edgekit.bundle.open import TENSORS, Bundle
from edgekit.errors import UsageError
from edgekit.progress import Progress, silent
from edgekit.records.run_record import RunRecord
from edgekit.runners import page
from edgekit.runners.page import Ask
from edgekit.serve.app import is_loopback
from edgekit.serve.inbox import InboxLimits
from edgekit.serve.server import EVERYWHERE, address_here

_TOKEN_BYTES = 16
_ROOM_BYTES = 16 << 20  # of a post beyond its tensors: the record itself, and outputs that are larger than expected


@dataclass(frozen=True)
class Invitation:
    """What to open on the device. ``secure``: the page may use WebGPU and threads there."""

    url: str
    secure: bool


def run(
    bundle: Bundle,
    ask: Ask,
    announce: Callable[[Invitation], None],
    *,
    host: str | None = None,
    port: int = 0,
    progress: Progress = silent,
) -> RunRecord:
    """Serve ``bundle`` to this machine's network, have ``announce`` tell someone its address, and wait for one record.

    Every address holds a token of this run, without which the server answers nothing; it takes one record, and ends
    with that, or after ``ask.timeout_seconds``. ``host`` None: the address by which this machine is reached from its
    network. Raises UsageError where it cannot listen, ParityError when no record came or one was refused.
    """
    place = address_here() if host is None or host in EVERYWHERE else host
    if place is None:
        raise UsageError("This machine is in no network.", hint="Name an address of it with --host.")
    return page.until_interrupted(_run(bundle, ask, announce, place, port, progress))


async def _run(
    bundle: Bundle, ask: Ask, announce: Callable[[Invitation], None], host: str, port: int, progress: Progress
) -> RunRecord:
    limits = InboxLimits(post_bytes=_ROOM_BYTES + 2 * (bundle.folder / TENSORS).stat().st_size, records=1)
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    async with page.served(bundle, ask, host=host, port=port, token=token, limits=limits) as watch:
        announce(Invitation(watch.url, is_loopback(host)))
        progress("Waiting for the record")
        outcome = await page.wait(watch, _nothing(), ask.timeout_seconds, late="No record came")
    hint = f"Was the page opened? The device must reach {watch.origin}: the same network, and no firewall between."
    return page.conclude(watch, outcome, hint, has_console=False)


async def _nothing() -> None:
    """Open nothing: a person does."""
