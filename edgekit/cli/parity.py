"""``edgekit parity``: replay a bundle's golden cases in real browsers and judge the outputs."""

import io
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from edgekit import console, matrix, parity
from edgekit.bundle.destination import check_outside_bundles, check_takes_files
from edgekit.cli.options import FiniteRange, json_option, list_option, targets_dir_option, tolerance_option, unique
from edgekit.errors import ParityError, UsageError
from edgekit.files import write_atomic
from edgekit.matrix import Combination, MatrixRow
from edgekit.parity import ParityOptions, ParityResult
from edgekit.progress import silent
from edgekit.records import labels, run_record
from edgekit.records import verdict as verdicts
from edgekit.records.cases import Tolerance
from edgekit.records.jsonable import jsonable
from edgekit.report import html, junit, text, words
from edgekit.report.entry import Entry
from edgekit.report.text import TextTable
from edgekit.runners.browsers import GPUS
from edgekit.runners.inbox import Invitation
from edgekit.runners.page import DEFAULT_TIMEOUT_SECONDS

_MANY = "With several, separated by commas, every combination runs."


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@list_option("--browser", "browsers", item=click.STRING, metavar="NAME[,NAME]",
              help=f"The browser to drive: chromium, firefox or webkit. Default: the target's. {_MANY}")  # fmt: skip
@click.option("--browser-path", type=click.Path(path_type=Path), metavar="FILE", help="The browser's program.")
@click.option("--cdp", metavar="URL", help="Use the Chromium that runs with its DevTools protocol at this address.")
@click.option("--remote", metavar="URL", help="Use a browser of the Playwright server at this ws:// address.")
@click.option("--inbox", is_flag=True, help="Show an address for a phone in this network to open, and wait for it.")
@click.option("--device", metavar="ADDRESS",
              help="Run the bundle on this device: ssh://USER@HOST[:PORT], adb://SERIAL, or emulated: an arm64 Linux "
              "on this machine.")  # fmt: skip
@click.option("--host", metavar="ADDRESS", help="With --cdp or --inbox: the address of this machine to serve at.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="With --cdp or --inbox: the port to serve at.")
@click.option("--gpu", type=click.Choice(GPUS), default="auto", show_default=True, help="The WebGPU adapter to use.")
@click.option("--case", "cases", multiple=True, metavar="ID", help="Replay this golden case only. Repeatable.")
@list_option("--variant", "variants", item=click.STRING, metavar="ID[,ID]",
              help="Use this variant of the runtime instead of the first that runs. See --browser.")  # fmt: skip
@list_option("--threads", item=click.IntRange(1, 64), metavar="N[,N]",
              help="How many threads. Default: as the target says. See --browser.")  # fmt: skip
@click.option("--repeats", type=click.IntRange(0, 1000), default=parity.DEFAULT_REPEATS, show_default=True,
              help="How many runs are timed after the first.")  # fmt: skip
@click.option("--timeout", type=FiniteRange(1, 86400), default=DEFAULT_TIMEOUT_SECONDS, show_default=True,
              metavar="SECONDS", help="How long the page may take to answer.")  # fmt: skip
@tolerance_option
@click.option("--labels", "labels_file", type=click.Path(path_type=Path), metavar="FILE",
              help="What is right by the task itself: CSV lines case,label, or JSON. Tells the accuracy of desktop and "
              "device, and which samples changed.")  # fmt: skip
@click.option("--soak", type=click.IntRange(0, 100_000), default=0, metavar="N",
              help="Run one case N times more: does the answer drift, does the memory grow?")  # fmt: skip
@click.option("--strength", is_flag=True,
              help="Try the cases on faulty copies of the model, on the desktop, at these tolerances: how many do they "
              "catch, and which nodes does no case watch?")  # fmt: skip
@click.option("--allow-fallback", is_flag=True, help="Let another execution provider than the target's first pass.")
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML.")
@click.option("--report", "report_file", type=click.Path(path_type=Path), metavar="FILE", help="Write an HTML report.")
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="DIR",
              help="Keep the run's records here. Default for several combinations: BUNDLE.parity.")  # fmt: skip
@targets_dir_option
@json_option
def command(bundle: Path, junit_file: Path | None, report_file: Path | None, as_json: bool, **values: Any) -> int:
    """Replay a bundle's golden cases in a browser or on a device, and judge them.

    Exit code 0: passed, in every combination that was asked for. 6: failed, refused or not run. 4: the only browser
    or device that was asked for is missing.

    \b
    Example:
      edgekit parity bundle
      edgekit parity bundle --case random-1 --tolerance scores=1e-3 --report report.html
      edgekit parity bundle --browser chromium,firefox,webkit --variant jspi,asyncify,wasm --threads 1,2
      edgekit parity bundle --inbox --variant wasm
      edgekit parity pi-bundle --device ssh://pi@raspberrypi.local
    """
    chosen = matrix.combinations(*(values[name] or () for name in ("browsers", "variants", "threads")))
    options = _options(bundle, values, chosen)
    for place in (junit_file, report_file, options.output):
        if place is not None:  # before the minutes of work, not after them
            check_outside_bundles(place)
    if options.output is not None and len(chosen) > 1:  # a folder of runs, each of which is checked where it goes
        check_takes_files(options.output)
    rows: Sequence[MatrixRow] = ()
    # A bar would redraw itself over the address and its drawing, and break them into lines.
    with nullcontext(silent) if options.inbox else console.progress() as progress:
        if len(chosen) > 1:
            rows = matrix.verify(bundle, chosen, options, progress=progress)
            results = [row.result for row in rows]
        else:
            results = [parity.verify(bundle, options, progress=progress)]
    if junit_file is not None:
        write_atomic(junit_file, junit.to_xml([result.verdict for result in results]))
    if report_file is not None:
        write_atomic(report_file, html.report_html([_entry(result, options) for result in results]).encode())
    if as_json:
        console.data_json(_rows_json(rows) if rows else _result_json(results[0]))
    elif rows:
        _print_rows(rows)
    else:
        print_result(results[0])
    if rows:
        console.talk(f"The runs are kept in {options.output}.")
    for place in (report_file, junit_file):
        if place is not None:
            console.talk(f"Wrote {place}.")
    if not rows and results[0].hint:
        console.talk(f"\nhint: {results[0].hint}")
    return 0 if all(result.verdict.passed for result in results) else ParityError.exit_code


def _options(bundle: Path, values: dict[str, Any], chosen: Sequence[Combination]) -> ParityOptions:
    several = len(chosen) > 1
    _refuse_two_places(values)
    if several and values["inbox"]:
        raise UsageError("--inbox waits for one record.", hint="Give it one variant and one number of threads.")
    if values["device"] and several:
        raise UsageError("--device names a device that is no browser, and runs the bundle once.",
                         hint="Leave out lists of variants or threads.")  # fmt: skip
    if several and values["browser_path"] and len({one.browser for one in chosen}) > 1:
        raise UsageError("--browser-path names one program, and several browsers are asked for.",
                         hint="Name programs with EDGEKIT_BROWSER, EDGEKIT_FIREFOX, EDGEKIT_WEBKIT.")  # fmt: skip
    if (values["host"] or values["port"]) and not (values["cdp"] or values["inbox"]):
        raise UsageError("--host and --port belong to --cdp and --inbox.", hint="Leave them out.")
    output = values["output"]
    if several and output is None:
        place = bundle.resolve()
        output = place.with_name(f"{place.name}.parity")
    return ParityOptions(
        runner=chosen[0].browser,
        browser_path=values["browser_path"],
        gpu=values["gpu"],
        cases=values["cases"] or None,
        variant=chosen[0].variant,
        threads=chosen[0].threads,
        repeats=values["repeats"],
        timeout_seconds=values["timeout"],
        tolerance=unique(
            ((name, Tolerance(relative, absolute)) for name, relative, absolute in values["tolerances"]), "--tolerance"
        ),
        allow_fallback=values["allow_fallback"],
        targets_dir=values["targets_dir"],
        output=output,
        labels=labels.load(values["labels_file"]) if values["labels_file"] else (),
        soak=values["soak"],
        strength=values["strength"],
        command=("edgekit", *sys.argv[1:]),
        **{name: values[name] for name in ("cdp", "remote", "inbox", "device", "host", "port")},
        announce=_announce,
    )


def _refuse_two_places(values: dict[str, Any]) -> None:
    """Raise UsageError where two options name where the bundle runs: none of them is silently left aside."""
    names = {"cdp": "--cdp", "remote": "--remote", "inbox": "--inbox", "device": "--device", "browsers": "--browser",
             "browser_path": "--browser-path"}  # fmt: skip
    given = [option for name, option in names.items() if values[name]]
    # A server of Playwright has several browsers, and a browser may be at a place of its own.
    if len(given) > 1 and set(given) not in ({"--remote", "--browser"}, {"--browser", "--browser-path"}):
        raise UsageError(
            f"{' and '.join(given)} cannot be used together: each names another place to run the bundle at.",
            hint="Give one of them. (--browser may stand beside --remote or --browser-path.)",
        )


def _announce(invitation: Invitation) -> None:
    """Tell, on stderr, what to open on the phone."""
    import segno

    drawn = io.StringIO()
    segno.make(invitation.url, error="l").terminal(drawn, border=2, compact=True)
    lines = ["Open this address on the device, in the same network as this machine:", "", invitation.url, ""]
    lines.append(drawn.getvalue())
    lines.append("The server listens to the network until the record has come or time is up,")
    lines.append("and answers only under this address. Ctrl-C ends it.")
    if not invitation.secure:
        lines.append("warning: over plain http a browser allows neither WebGPU nor threads: only the")
        lines.append("  wasm variant with one thread can run there. For both, use a cable:")
        lines.append("  --cdp with 'adb forward' and 'adb reverse'.")
    console.talk("\n".join(lines))


def _entry(result: ParityResult, options: ParityOptions) -> Entry:
    return Entry(result.verdict, result.record, result.desktop, result.case_set, options.command, result.manifest)


def _result_json(result: ParityResult) -> dict[str, Any]:
    timings = [asdict(row) for row in result.timings]
    placement = None if result.record is None else run_record.placement_json(result.record)
    return {"verdict": verdicts.to_json(result.verdict), "timings": jsonable(timings), "placement": placement}


def _rows_json(rows: Sequence[MatrixRow]) -> dict[str, Any]:
    found = [
        {
            **asdict(row.combination),
            **_result_json(row.result),
            "software_adapter": words.software_adapter(row.result.verdict.environment),
            "folder": None if row.folder is None else str(row.folder),
            "note": row.note,
            "hint": row.hint,
        }
        for row in rows
    ]
    return {"passed": all(row.result.verdict.passed for row in rows), "combinations": found}


def _print_rows(rows: Sequence[MatrixRow]) -> None:
    _table(text.matrix_table(rows))
    console.data(console.visible("\n".join(text.matrix_notes(rows))))


def print_result(result: ParityResult) -> None:
    """Show the verdict: the outputs, the times, and what they come to."""
    if result.record is not None:
        _table(text.output_table(result.verdict))
        _table(text.timing_table(result.timings, "browser" if words.browser(result.record.environment) else "device"))
    console.data(console.visible("\n".join(text.summary(result.verdict, result.record))))


def _table(table: TextTable) -> None:
    columns = [console.Column(column.title, column.number, column.spare) for column in table.columns]
    console.table(table.title, columns, table.rows)
