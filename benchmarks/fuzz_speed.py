"""Measure how many drawn cases a second `edgekit fuzz` does: drawn, run on the desktop and in Chromium, compared.

Run `python benchmarks/fuzz_speed.py [--seconds N] [--output FILE]`; by default it takes about four minutes and writes
`results/fuzz_speed.json`. The browser's start, and what is drawn for the first time, count. Another program on the same
cores makes the figures worse, so the CPU seconds of all processes of the run are recorded beside the wall time, and the
load of the machine.
"""

import argparse
import datetime
import os
import platform
import threading
import time
from pathlib import Path
from typing import Any

from edgekit import __version__
from edgekit.files import json_bytes, write_atomic
from edgekit.fuzz import generators, look
from edgekit.fuzz.journal import Journal
from edgekit.fuzz.look import Work
from edgekit.fuzz.trials import Bench
from edgekit.runtime import locate, pins
from edgekit.runtime.pins import Variant

RESULTS = Path(__file__).resolve().parent / "results"
GOALS = {"wasm": 100.0, "jspi": 5.0}
SECONDS = 120.0


class CpuTime:
    """The CPU seconds of this process and all that it started, also of those that have ended: looked at each second."""

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        self._before = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "CpuTime":
        self._look()
        self._before = sum(self._seen.values())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """What was used since the block began."""
        return sum(self._seen.values()) - self._before

    def _watch(self) -> None:
        while not self._over.wait(1.0):
            self._look()

    def _look(self) -> None:
        parents: dict[int, int] = {}
        used: dict[int, float] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            number = int(folder.name)
            parents[number] = int(words[1])
            used[number] = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        mine = {os.getpid()} | (self._seen.keys() & parents.keys())
        while more := {number for number, parent in parents.items() if parent in mine} - mine:
            mine |= more
        self._seen.update((number, used[number]) for number in mine)


def measure(variant: Variant, seconds: float) -> dict[str, Any]:
    """Look with one variant, on the software adapter where it has one."""
    journal = Journal({})
    bench = Bench(variant, locate.locate(None), gpu="software")
    with CpuTime() as cpu:
        look.look(bench, Work(generators.every(), 1), journal, seconds)
    cases = len(journal.outcomes)
    return {
        "cases": cases,
        "compared": journal.compared,
        "seconds": round(journal.seconds, 1),
        "cases_per_second": round(cases / journal.seconds, 1),
        "goal": GOALS[variant.id],
        "cpu_seconds": round(cpu.seconds, 1),
        "cases_per_cpu_second": round(cases / cpu.seconds, 1),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    """Measure each variant, print a line of it, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to look with each variant")
    parser.add_argument("--output", type=Path, default=RESULTS / "fuzz_speed.json")
    arguments = parser.parse_args()
    found = {}
    for variant in pins.load().chosen(list(GOALS), "the benchmark"):
        started = time.strftime("%H:%M:%S")
        one = found[variant.id] = measure(variant, arguments.seconds)
        print(
            f"{started} {variant.id}: {one['cases']:,} cases in {one['seconds']:.0f} s, {one['cases_per_second']} a "
            f"second (goal {one['goal']:.0f}), {one['cases_per_cpu_second']} a CPU second; load {one['load']}",
            flush=True,
        )
    document = {
        "date": datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d"),
        "edgekit": __version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "variants": found,
    }
    write_atomic(arguments.output, json_bytes(document))


if __name__ == "__main__":
    main()
