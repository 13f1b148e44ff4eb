"""What a run looked at and found, as the command shows it and as knowledge remembers it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from edgekit.fuzz.cluster import Cluster
from edgekit.fuzz.crashes import Crash
from edgekit.fuzz.journal import LETTERS, Journal
from edgekit.fuzz.trials import Bench
from edgekit.known.entries import Entry
from edgekit.records.jsonable import jsonable


@dataclass(frozen=True)
class FuzzReport:
    """What was looked at and found. ``counts``: cases by outcome; ``compared``: those with answers on both sides.

    ``entries``: causes with a pattern, as they become knowledge; ``unclear``: failures of which no pattern was found,
    in words; ``desktop``: disagreements in which the desktop is wrong by the reference evaluator; ``crashed``: cases
    that ended the runtime, with the small one that it was made.
    """

    runtime: str
    variant: str
    browser: str
    adapter: str | None
    software: bool
    seed: int
    cases: int
    compared: int
    seconds: float
    counts: Mapping[str, int]
    operators: int
    entries: tuple[Entry, ...]
    unclear: tuple[str, ...]
    desktop: tuple[str, ...]
    crashed: tuple[str, ...]
    repros: tuple[str, ...]

    @property
    def cases_per_second(self) -> float:
        return self.cases / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON value."""
        texts = [entry.text for entry in self.entries]
        document: dict[str, Any] = jsonable(asdict(self) | {"cases_per_second": round(self.cases_per_second, 2)})
        for entry, text in zip(document["entries"], texts, strict=True):
            entry["text"] = text
        return document


def of(
    bench: Bench,
    operators: int,
    seed: int,
    journal: Journal,
    found: Sequence[Cluster],
    entries: tuple[Entry, ...],
    ended: Sequence[Crash] = (),
) -> FuzzReport:
    """Return the report of a run. ``operators``: how many generators it drew from."""
    adapter = bench.adapter
    problems = journal.problems.items()
    told = {number: f"{one['generator']} (case {number}): {one['problem']}" for number, one in problems}
    told |= {str(one.number): f"{told[str(one.number)]}; {one.text}" for one in ended}
    letters = {status: [str(n) for n in journal.numbers(status)] for status in ("desktop", "crashed")}
    return FuzzReport(
        runtime=f"{bench.dist.package} {bench.dist.version}",
        variant=bench.variant.id,
        browser=f"{bench.engine.name} {bench.browser_version}".strip(),
        adapter=f"{adapter.vendor} {adapter.architecture}".strip() if adapter else None,
        software=bool(adapter and adapter.software),
        seed=seed,
        cases=len(journal.outcomes),
        compared=journal.compared,
        seconds=round(journal.seconds, 1),
        counts={status: count for status in LETTERS if (count := journal.count(status))},
        operators=operators,
        entries=entries,
        unclear=tuple(f"{one.text}: {one.failures[0].problem}" for one in found if not one.distinct),
        desktop=tuple(told[number] for number in letters["desktop"]),
        crashed=tuple(told[number] for number in letters["crashed"]),
        repros=(),
    )


def measured(report: FuzzReport) -> Mapping[str, Any]:
    """Return what a file of knowledge says of the run that it comes from."""
    return {
        "browser": report.browser, "adapter": report.adapter, "software": report.software, "seed": report.seed,
        "cases": report.cases, "compared": report.compared, "operators": report.operators,
    }  # fmt: skip
