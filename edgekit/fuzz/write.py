"""Write what was found: entries of knowledge, and a repro of each cause."""

import re
import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from edgekit import files, repro
from edgekit.fuzz.cluster import Cluster
from edgekit.fuzz.crashes import Crash
from edgekit.fuzz.cures import Cured
from edgekit.fuzz.report import FuzzReport
from edgekit.fuzz.trials import Bench
from edgekit.known import entries as known_entries
from edgekit.known.entries import Entry, Knowledge
from edgekit.repro import Repro
from edgekit.runners import browsers

_MOST_TEXT = 1500
REPROS = "repros"


def entries(found: Sequence[Cluster], cured: Sequence[Cured]) -> tuple[Entry, ...]:
    """Return an entry for each cause that has a pattern."""
    pairs = [(one, cures) for one, cures in zip(found, cured, strict=True) if one.distinct]
    made = [_entry(one, cures) for one, cures in pairs]
    counts: dict[str, int] = {}
    unique = []
    for entry in made:
        counts[entry.id] = counts.get(entry.id, 0) + 1
        unique.append(replace(entry, id=f"{entry.id}-{counts[entry.id]}"))
    return tuple(unique)


def _entry(found: Cluster, cured: Cured) -> Entry:
    smallest = found.failures[0]
    assert smallest.drawn.case is not None  # noqa: S101 - what fails was drawn
    name = "-".join(map(_slug, found.operators))
    return Entry(
        id=name,
        operators=found.operators,
        conditions=found.conditions,
        side=smallest.side or "unknown",
        failures=len(found.failures),
        passes=found.passes,
        example=onnx.printer.to_text(onnx.load_from_string(smallest.drawn.case.model))[:_MOST_TEXT],
        problem=smallest.problem or "",
        cures=cured.cures,
        drawn={"generator": smallest.drawn.generator, "choices": dict(sorted(smallest.drawn.choices.items()))},
    )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def forget(output: Path, made: Collection[str]) -> None:
    """Remove the repros of an earlier run in ``output`` that are not among ``made``; what is no repro stays."""
    for old in sorted((output / REPROS).glob("*")):
        if f"{REPROS}/{old.name}" not in made and old.is_dir() and not old.is_symlink() and repro.is_repro(old):
            shutil.rmtree(old)


def folder(
    output: Path,
    bench: Bench,
    understood: tuple[Sequence[Cluster], Sequence[Cured], Sequence[Crash]],
    known: Knowledge,
    report: FuzzReport,
) -> tuple[str, ...]:
    """Write ``known.json``, ``report.json`` and repros into ``output``; returns the repros' folders.

    ``understood``: causes, what was measured of each, and crashes.
    """
    found, cured, ended = understood
    made = []
    ids = iter(entry.id for entry in known.entries)
    for place, (one, cures) in enumerate(zip(found, cured, strict=True)):
        name = next(ids) if one.distinct else f"unclear-{place}"
        repro.write(output / REPROS / name, _repro(one, cures, report), bench.variant, bench.dist)
        made.append(f"{REPROS}/{name}")
    for crash in ended:
        if crash.smallest is not None:
            name = f"crash-{_slug(crash.smallest.drawn.generator)}"
            repro.write(output / REPROS / name, _crash_repro(crash, report), bench.variant, bench.dist)
            made.append(f"{REPROS}/{name}")
    files.write_atomic(output / "known.json", known_entries.to_bytes(known))
    files.write_atomic(output / "report.json", files.json_bytes(replace(report, repros=tuple(made)).to_json()))
    forget(output, made)
    return tuple(made)


def _flags(report: FuzzReport) -> tuple[str, ...]:
    return browsers.software_flags() if report.software and report.browser.lower().startswith("chrom") else ()


def _repro(found: Cluster, cured: Cured, report: FuzzReport) -> Repro:
    smallest = found.failures[0]
    assert smallest.drawn.case and smallest.expected and smallest.got  # noqa: S101 - it was asked again
    case = smallest.drawn.case
    words = {"browser": "the browser is wrong", "both": "both are wrong", "unknown": "nobody knows who is right"}
    operators, problem = " + ".join(found.operators), repro.escaped(smallest.problem or "")
    seen = f"{len(found.failures)} cases with this were wrong, and none of {found.passes} right ones has it."
    lines = [
        f"{operators} gives another answer than desktop onnxruntime, without an error: {problem}.",
        f"By the onnx reference evaluator, {words.get(smallest.side or '', 'nobody knows who is right')}.",
        f"Seen where: {repro.escaped(found.text)}. {seen}" if found.distinct else "No pattern was found.",
        "\n".join(f"- {cure}: {'right' if cure.cures else 'still wrong'}" for cure in cured.cures),
    ]
    return Repro(
        title=f"Wrong answers of {operators} in {report.runtime} ({report.variant})",
        model=case.model,
        inputs=case.inputs,
        expected=smallest.expected.outputs,
        got=smallest.got.outputs,
        combination=f"{report.browser}, {report.variant}",
        facts=(("Adapter", report.adapter or "none"), ("Drawn with the seed", str(report.seed))),
        flags=_flags(report),
        text="\n\n".join(lines),
        relative=case.rtol,
        absolute=case.atol,
    )


def _crash_repro(crash: Crash, report: FuzzReport) -> Repro:
    trial = crash.smallest
    assert trial and trial.drawn.case and trial.expected  # noqa: S101 - it was asked again
    problem = repro.escaped(trial.problem or "")
    return Repro(
        title=f"{trial.drawn.generator} ends {report.runtime} ({report.variant})",
        model=trial.drawn.case.model,
        inputs=trial.drawn.case.inputs,
        expected=trial.expected.outputs,
        got=(),
        combination=f"{report.browser}, {report.variant}",
        facts=(("Adapter", report.adapter or "none"), ("Drawn with the seed", str(report.seed))),
        flags=_flags(report),
        text=f"The runtime ends where desktop onnxruntime gives an answer: {problem}. Nothing more runs in its page.",
        relative=trial.drawn.case.rtol,
        absolute=trial.drawn.case.atol,
    )


def update(known: Knowledge, among: Collection[str] | None = None) -> Path:
    """Put a run's knowledge in the place of what edgekit comes with of that build; returns the file.

    ``among``: the generators that were drawn, where not all were: what is known of others stays.
    """
    before = known_entries.load(known.package, known.version, known.variant, known_entries.FINDINGS)
    if among is not None and before is not None:
        kept = [entry for entry in before.entries if entry.drawn["generator"] not in among]
        together = sorted([*kept, *known.entries], key=lambda entry: (len(entry.operators), entry.operators))
        known = replace(before, entries=tuple(together))
    path = known_entries.FINDINGS / known_entries.file_name(known.package, known.version, known.variant)
    files.write_atomic(path, known_entries.to_bytes(known))
    known_entries.load.cache_clear()
    return path
