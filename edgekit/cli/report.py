"""``edgekit report``: turn run records and verdicts into one HTML page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from edgekit import console
from edgekit.bundle.destination import check_outside_bundles
from edgekit.bundle.open import Bundle, load_cases, load_strength, open_bundle
from edgekit.cli.options import json_option
from edgekit.compare import judge_under
from edgekit.errors import UsageError
from edgekit.files import write_atomic
from edgekit.parity import first_execution_provider
from edgekit.records import verdict as verdicts
from edgekit.records.cases import CaseSet
from edgekit.records.store import Conditions, SavedRun, load_run
from edgekit.report import html, junit, text
from edgekit.report.entry import Entry
from edgekit.report.placement import placement_words


@click.command()
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True,
              metavar="FILE", help="The page to write.")  # fmt: skip
@click.option("--bundle", type=click.Path(path_type=Path), metavar="DIR",
              help="Judge by the golden cases of this bundle. Default: those kept beside each record.")  # fmt: skip
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML, too.")
@json_option
def command(records: Sequence[Path], output: Path, bundle: Path | None, junit_file: Path | None, as_json: bool) -> None:
    """Turn run records and verdicts into one HTML page.

    RECORD is a folder that 'edgekit parity -o' wrote, or a record.json with its record.safetensors beside it. Each is
    judged again, from its outputs; several are shown side by side. Exit code 0 says that the page was written, not that
    the verdicts are good: 'edgekit parity' says that.

    \b
    Example:
      edgekit report run -o report.html
      edgekit report desktop/run phone/record.json --bundle bundle -o report.html
    """
    for place in (output, junit_file):
        if place is not None:
            check_outside_bundles(place)
    opened = None if bundle is None else open_bundle(bundle)
    given = None if opened is None else (opened, load_cases(opened))
    entries = [_entry(load_run(path), given) for path in records]
    write_atomic(output, html.report_html(entries).encode())
    if junit_file is not None:
        write_atomic(junit_file, junit.to_xml([entry.verdict for entry in entries]))
    if as_json:
        documents = [verdicts.to_json(entry.verdict) for entry in entries]
        placements = [placement_words(entry.record) for entry in entries]
        console.data_json({"report": str(output), "verdicts": documents, "placements": placements})
        return
    for entry in entries:
        console.data(console.visible("\n".join(text.summary(entry.verdict, entry.record, titled=len(entries) > 1))))
    for place in (output, junit_file):
        if place is not None:
            console.talk(f"Wrote {place}.")


def _entry(run: SavedRun, given: tuple[Bundle, CaseSet] | None) -> Entry:
    conditions, case_set = run.conditions or Conditions(title=run.place.stem), run.case_set
    manifest = run.manifest
    if given is not None:
        bundle, case_set = given
        manifest = bundle.manifest
        conditions = _of_bundle(run, bundle, case_set)
    if case_set is None:
        raise UsageError(
            f"{run.place} has no golden cases beside it to be judged by.",
            hint="Name the bundle that it was recorded from with --bundle.",
        )
    provider = first_execution_provider(manifest) if manifest is not None else None
    version = manifest.runtime.version if manifest is not None else None
    verdict = judge_under(conditions, case_set, run.record, execution_provider=provider, runtime_version=version)
    strength = run.strength if given is None else load_strength(given[0])
    verdict = replace(verdict, strength=strength)
    return Entry(verdict, run.record, run.desktop, case_set, conditions.command, manifest)


def _of_bundle(run: SavedRun, bundle: Bundle, case_set: CaseSet) -> Conditions:
    """Return what a record is judged by when the user names the bundle: a wrong one is a mistake of theirs."""
    if run.record is not None and run.record.hashes.model != case_set.model_sha256:
        raise UsageError(
            f"{run.place} is a record of another model than that of the bundle {bundle.folder}: its model has sha256 "
            f"{run.record.hashes.model[:16]}…, the bundle's {case_set.model_sha256[:16]}….",
            hint="Name the bundle that the record was made from.",
        )
    manifest = bundle.manifest
    kept = run.conditions or Conditions(title=manifest.title)
    return replace(kept, title=manifest.title, target=manifest.target, manifest_sha256=bundle.manifest_sha256)
