"""Runs on disk: a folder that says by itself what was asked, what ran, what it gave and how it was judged.

    conditions.json                            what was asked: title, target, cases, tolerances, the command
    cases.json           cases.safetensors     the golden cases it was judged by
    record.json          record.safetensors    what the device reported (missing when nothing came back)
    strength.json                              how many faulty models the cases catch (optional)
    bundle.json                                the manifest of the bundle that was run (optional)
    desktop_record.json  desktop_record.safetensors   the desktop's run beside it, for its times (optional)
    verdict.json                               what ``edgekit.compare`` concluded, for other tools to read

edgekit itself never reads ``verdict.json`` back: it judges again, from the outputs.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from edgekit.errors import UsageError
from edgekit.files import json_bytes, replace_folder
from edgekit.records import cases, run_record
from edgekit.records import manifest as manifests
from edgekit.records import strength as strengths
from edgekit.records.cases import CaseSet, Tolerance
from edgekit.records.jsonable import jsonable
from edgekit.records.labels import Label
from edgekit.records.manifest import Manifest
from edgekit.records.run_record import RunRecord
from edgekit.records.strength import Strength
from edgekit.records.validate import validated
from edgekit.records.verdict import Verdict
from edgekit.records.verdict import to_json as verdict_json

FORMAT = 1
RECORD, CASES, DESKTOP, CONDITIONS, VERDICT = "record", "cases", "desktop_record", "conditions", "verdict"
STRENGTH = "strength"
BUNDLE = "bundle"  # not "manifest": a folder with a manifest.json is a bundle


@dataclass(frozen=True)
class Conditions:
    """What was asked of a run and of its judge; ``command`` is the command line that repeats it (empty: unknown).

    ``cases`` None: all of them. ``tolerance`` overrides that of the cases, by output name. ``manifest_sha256``: of the
    bundle that was to be run. ``no_record``: why no record came back. ``labels``: what is right by the task itself.
    """

    title: str
    target: str | None = None
    cases: tuple[str, ...] | None = None
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    allow_fallback: bool = False
    manifest_sha256: str | None = None
    no_record: str | None = None
    command: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True, eq=False)
class SavedRun:
    """What ``load_run`` found. A record that came alone (posted by a phone, say) has no cases and no conditions."""

    place: Path
    record: RunRecord | None
    case_set: CaseSet | None = None
    desktop: RunRecord | None = None
    conditions: Conditions | None = None
    manifest: Manifest | None = None
    strength: Strength | None = None


def save_run(
    folder: Path,
    *,
    conditions: Conditions,
    case_set: CaseSet,
    record: RunRecord | None,
    verdict: Verdict,
    desktop: RunRecord | None = None,
    manifest: Manifest | None = None,
) -> None:
    """Write a run into ``folder``, whole or not at all; a run that is there already is replaced.

    Raises UsageError when ``folder`` holds something else (``check_place``), or cannot be written;
    LimitError when the disk is full.
    """
    check_place(folder)

    def fill(place: Path) -> None:
        _write(place, CONDITIONS, jsonable({"format": FORMAT, **asdict(conditions)}))
        _write(place, CASES, *cases.to_files(case_set))
        _write(place, VERDICT, verdict_json(verdict))
        if verdict.strength is not None:
            _write(place, STRENGTH, strengths.to_json(verdict.strength))
        if record is not None:
            _write(place, RECORD, *run_record.to_files(record))
        if manifest is not None:
            _write(place, BUNDLE, manifests.to_json(manifest))
        if desktop is not None:
            _write(place, DESKTOP, *run_record.to_files(desktop))

    replace_folder(folder, fill)


def check_place(folder: Path) -> None:
    """Raise UsageError, with nothing touched, where a run must not be kept: only an earlier run is replaced.

    That is a folder which has the conditions of a run. Pages (``.html``, ``.xml``) may lie beside its files, for
    reports of a run are kept there, and are written again with it; what else lies there would be lost.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, not a folder.", hint="Choose another folder for the run.")
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if found and f"{CONDITIONS}.json" not in found:
        raise UsageError(
            f"{folder} is not empty and holds no run.", hint="Choose another folder; edgekit replaces only its own."
        )
    names = (RECORD, CASES, DESKTOP, CONDITIONS, VERDICT, STRENGTH, BUNDLE)
    own = {f"{name}{suffix}" for name in names for suffix in (".json", ".safetensors")}
    if foreign := [name for name in found if name not in own and not name.endswith((".html", ".xml"))]:
        raise UsageError(
            f"{folder} holds files that are not of its run and would be lost: {', '.join(foreign[:3])}.",
            hint="Move them away, or choose another folder for the run.",
        )


def holds_run(folder: Path) -> bool:
    """Whether a run was kept in ``folder`` itself."""
    return (folder / f"{RECORD}.json").is_file()


def load_run(place: Path) -> SavedRun:
    """Read the run in a folder, or the record in a ``.json`` file with its ``.safetensors`` beside it.

    Raises UsageError that names the file when there is no run, or a part of it is malformed.
    """
    if place.is_dir():
        return _load_folder(place)
    if not place.exists():
        raise UsageError(
            f"There is no record at {place}.", hint="Name a folder that 'edgekit parity -o' wrote, or a record.json."
        )
    if place.name == f"{RECORD}.json":
        return _load_folder(place.parent)
    return SavedRun(place=place, record=_read_record(place))


def _load_folder(folder: Path) -> SavedRun:
    files = {name: folder / f"{name}.json" for name in (RECORD, CASES, DESKTOP, CONDITIONS, BUNDLE, STRENGTH)}
    there = {name for name, path in files.items() if path.is_file()}
    if RECORD not in there and not {CONDITIONS, CASES} <= there:
        raise UsageError(
            f"{folder} holds no run record: {RECORD}.json is missing.",
            hint="Name a folder of 'edgekit parity -o', or a record.json with its record.safetensors.",
        )
    return SavedRun(
        place=folder,
        record=_read_record(files[RECORD]) if RECORD in there else None,
        case_set=_read_cases(files[CASES]) if CASES in there else None,
        desktop=_read_record(files[DESKTOP]) if DESKTOP in there else None,
        conditions=_read_conditions(files[CONDITIONS]) if CONDITIONS in there else None,
        manifest=_read_manifest(files[BUNDLE]) if BUNDLE in there else None,
        strength=_read_strength(files[STRENGTH]) if STRENGTH in there else None,
    )


def _write(folder: Path, name: str, document: Any, tensors: bytes | None = None) -> None:
    (folder / f"{name}.json").write_bytes(json_bytes(document))
    if tensors is not None:
        (folder / f"{name}.safetensors").write_bytes(tensors)


def _read_record(path: Path) -> RunRecord:
    document, tensors = _read_json(path), _read_tensors(path)
    try:
        return run_record.from_files(document, tensors)
    except UsageError as error:
        raise _malformed(path, error) from error


def _read_cases(path: Path) -> CaseSet:
    document, tensors = _read_json(path), _read_tensors(path)
    try:
        return cases.from_files(document, tensors)
    except UsageError as error:
        raise _malformed(path, error) from error


def _read_manifest(path: Path) -> Manifest:
    try:
        return manifests.from_json(_read_json(path))
    except UsageError as error:
        raise _malformed(path, error) from error


def _read_strength(path: Path) -> Strength:
    try:
        return strengths.from_json(_read_json(path))
    except UsageError as error:
        raise _malformed(path, error) from error


def _read_conditions(path: Path) -> Conditions:
    try:
        document = validated(_read_json(path), CONDITIONS, path.name)
    except UsageError as error:
        raise _malformed(path, error) from error
    document = {key: value for key, value in document.items() if key != "format"}
    names = document["cases"]
    return Conditions(
        **{
            **document,
            "cases": None if names is None else tuple(names),
            "tolerance": {name: Tolerance(**value) for name, value in document["tolerance"].items()},
            "command": tuple(document["command"]),
            "labels": tuple(Label(**label) for label in document.get("labels", ())),  # absent in older runs
        }
    )


def _malformed(path: Path, error: UsageError) -> UsageError:
    return UsageError(
        f"{path} is malformed. {error.message}", hint=error.hint or "Run 'edgekit parity' again to write it anew."
    )


def _read_tensors(path: Path) -> bytes:
    beside = path.with_suffix(".safetensors")
    if not beside.is_file():
        raise UsageError(
            f"{path.name} has no {beside.name} beside it, in {path.parent}.", hint="Copy both files together."
        )
    return beside.read_bytes()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _read_json(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_no_constant)
        if "\\ud" in text.lower():  # perhaps half of a surrogate pair, which no file could be written with again
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:  # decoding, encoding and syntax errors are all ValueErrors
        raise UsageError(f"{path} is not a JSON file: {str(error)[:200]}") from error
    return document
