"""``edgekit serve``: serve a bundle's demo page on this machine."""

import queue
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from edgekit import console
from edgekit.bundle.destination import check_outside_bundles
from edgekit.bundle.open import open_bundle, require_kind
from edgekit.cli import program
from edgekit.cli.options import json_option
from edgekit.report import words
from edgekit.serve.app import create_app, is_loopback
from edgekit.serve.inbox import Arrival, Inbox
from edgekit.serve.server import EVERYWHERE, address_here, serving
from edgekit.targets.options import WEB

_NOT_SECURE = (
    "warning: other machines open this page over plain http, where browsers allow neither WebGPU nor threads.\n"
    "  For both, put an https proxy or tunnel before this port. An Android phone on a cable can use\n"
    "  'adb reverse tcp:{port} tcp:{port}' and open http://localhost:{port}/."
)


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port; 0 takes a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0 for all.")
@click.option(
    "--records", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Keep posted run records here. Default: BUNDLE.records beside the bundle.",
)  # fmt: skip
@click.option("--no-isolation", is_flag=True, help="Leave out the headers that allow threads, as most static hosts do.")
@json_option
def command(bundle: Path, port: int, host: str, records: Path | None, no_isolation: bool, as_json: bool) -> None:
    """Serve a bundle's demo page on this machine.

    Records that pages post are checked and kept. Ctrl-C ends the server.

    \b
    Example:
      edgekit serve bundle
      edgekit serve bundle --host 0.0.0.0 --port 9000
    """
    opened = require_kind(open_bundle(bundle), WEB, "serve")
    if records is not None:
        check_outside_bundles(records)
    place = bundle.resolve()
    arrivals: queue.SimpleQueue[Arrival] = queue.SimpleQueue()
    inbox = Inbox(records or place.with_name(f"{place.name}.records"), listener=arrivals.put)
    local = is_loopback(host)
    app = create_app(opened, inbox, isolation=not no_isolation, loopback_only=local)
    with suppress(KeyboardInterrupt), serving(app, host, port) as url:
        urls = _urls(url, host)
        if not local:
            console.talk(_NOT_SECURE.format(port=url.rsplit(":", 1)[1].rstrip("/")))
        if as_json:
            console.data_json({"urls": urls, "records": str(inbox.folder)})
        else:
            console.talk(f"Records go to {inbox.folder}. Ctrl-C ends the server.")
            console.data(console.visible_line(f"Serving {opened.manifest.title} at {' and '.join(urls)}"))
        sys.stdout.flush()  # whoever started this in a pipe waits for the address
        _report_arrivals(arrivals, bundle)
    console.talk("Stopped.")


def _report_arrivals(arrivals: queue.SimpleQueue[Arrival], bundle: Path) -> NoReturn:
    while True:
        with suppress(queue.Empty):
            # A wait without end cannot be interrupted on Windows.
            console.talk(_line(arrivals.get(timeout=1.0), bundle))


def _line(arrival: Arrival, bundle: Path) -> str:
    if arrival.record is None or arrival.folder is None:
        return f"A record was refused: {arrival.problem}"
    record = arrival.record
    done = sum(case.status == "done" for case in record.cases)
    problem = f" It says: {record.error}" if record.error else ""
    where = words.where(record.environment)
    judging = shlex.join(["report", str(arrival.folder), "--bundle", str(bundle)])
    return (
        f"Record {arrival.folder}: {done} of {len(record.cases)} cases done, {where}.{problem}\n"
        f"  Judge it: {program.name()} {judging}"
    )


def _urls(url: str, host: str) -> list[str]:
    """Name the addresses under which the page can be opened; that of all interfaces is none."""
    if host not in EVERYWHERE:
        return [url]
    port = url.rsplit(":", 1)[1]
    return [f"http://{name}:{port}" for name in ("127.0.0.1", address_here()) if name is not None]
