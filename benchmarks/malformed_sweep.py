"""Give every file of the malformed corpus to inspect, check and trim; demand a clean answer within 10 s and 1 GB.

Run ``python benchmarks/malformed_sweep.py [--every N] [--kind KIND ...] [--workers N] [--output FILE]``. Each command
runs in a process of its own, forked from one that has imported everything, and so do the child processes that it asks
for: that spares half a second of start-up for each of up to 20 processes. Every hundredth file goes through new
interpreters, as for a user. Time is the wall's, and beside it the CPU seconds of the command and all its
children: on a machine that does other things, the smaller of the two is held to the limit. A command hangs when it has
not ended after 90 s, without the time in which it, or a child of it, stood in line for a processor. Memory is the most
that the command's process ever held plus the most that any of its children did, mapped files too; what a forked child
has of its parent does not count twice.
"""

import argparse
import gc
import importlib
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import malformed  # noqa: E402

from edgekit.check import run as checking  # noqa: E402
from edgekit.child import main as child_main  # noqa: E402
from edgekit.child import process  # noqa: E402
from edgekit.child.process import ChildLimits  # noqa: E402
from edgekit.cli import check, inspect, main, trim  # noqa: E402, F401  the commands are imported to be warm
from edgekit.files import json_bytes, write_atomic  # noqa: E402

COMMANDS = {
    "inspect": ["inspect", "MODEL"],
    "check": ["check", "MODEL", "-t", "wasm", "-t", "webgpu"],
    "trim": ["trim", "MODEL", "-o", "OUT"],
}
MOST_SECONDS = 10.0
MOST_BYTES = 1_000_000_000
HANG_SECONDS = 90.0
# What is no more than large may take longer, and must end.
SLOW_KINDS = {"valid and large"}
SLOW_SECONDS = 300.0
# 2: no file, 3: no valid model, 5: over a limit. A model that trim cannot prove is 6.
CLEAN = {"inspect": {0, 2, 3, 5}, "check": {0, 2, 3, 5}, "trim": {0, 2, 3, 5, 6}}
REAL_EVERY = 100
# What a child of its own interpreter holds besides mapped files before it reads a model: measured, 21 to 52 MB.
INTERPRETER_BYTES = 50 << 20


@dataclass(frozen=True)
class Outcome:
    """What one command did with one file. ``faults``: what it must not do; none is good. ``said``: its first words."""

    kind: str
    name: str
    command: str
    code: int | None
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    said: str
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Ran:
    """What one process did."""

    code: int | None
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    out: str
    err: str


def run(arguments: Sequence[str], folder: Path, *, forked: bool, patience: float) -> "Ran":
    """Run edgekit. The exit code is None where it hung, and negative where a signal ended it."""
    started = time.monotonic()
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = _fork(arguments, out.fileno(), err.fileno(), folder, forked=forked)
        ended, status = 0, 0
        queued: dict[int, float] = {}
        held: dict[int, int] = {}
        while not ended and time.monotonic() - started < patience + sum(queued.values()):
            ended, status, usage = os.wait4(process, os.WNOHANG)
            if not ended and time.monotonic() - started > patience / 2:
                _note_queues(process, queued)
            if not ended and not forked:
                _note_peaks(process, held)
            time.sleep(0 if ended else 0.005)
        seconds = time.monotonic() - started
        if not ended:
            os.kill(process, signal.SIGKILL)
            _, _, usage = os.wait4(process, 0)
    peaks = folder / "peaks"
    own = held.pop(process, usage.ru_maxrss << 10)
    peak = int(peaks.read_text()) if peaks.exists() else own + max(held.values(), default=0)
    code = os.waitstatus_to_exitcode(status) if ended else None
    texts = [(folder / name).read_bytes().decode(errors="replace") for name in ("stdout", "stderr")]
    return Ran(code, seconds, usage.ru_utime + usage.ru_stime, peak, texts[0], texts[1])


def _note_queues(process: int, queued: dict[int, float]) -> None:
    """Note how long a process, and those that it waits for, have been ready to run and were not let: seconds, by id."""
    with suppress(OSError, ValueError, IndexError):
        queued[process] = int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            _note_queues(int(child), queued)


def _note_peaks(process: int, held: dict[int, int]) -> None:
    """Note the most that a process and its children have held: bytes, by id.

    Not what wait4 says: that counts the parent's memory for each child that it starts.
    """
    with suppress(OSError, IndexError):
        text = Path(f"/proc/{process}/status").read_text()
        held[process] = int(text.partition("VmHWM:")[2].split()[0]) << 10
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            _note_peaks(int(child), held)


def _fork(arguments: Sequence[str], out: int, err: int, folder: Path, *, forked: bool) -> int:
    process = os.fork()
    if process:
        return process
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    if not forked:
        os.execv(  # noqa: S606
            sys.executable, [sys.executable, "-c", "from edgekit.cli.main import main; main()", *arguments]
        )
    code = 70
    try:
        main.main(list(arguments))
    except SystemExit as request:
        code = int(request.code or 0)
        sys.stderr.flush()
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        (folder / "peaks").write_text(str(own + ForkedChild.most_bytes))
    finally:
        os._exit(code)


class ForkedChild:
    """Stands in for the Popen of ``edgekit.child.process``: the same limits and module, without a new interpreter.

    ``most_bytes``: the most that any child held: not what it shares with its parent, but what an interpreter takes.
    """

    most_bytes = 0

    def __init__(self, module: str, folder: Path, limits: ChildLimits) -> None:
        self.returncode: int | None = None
        self._shared = process.memory_of(os.getpid()) - INTERPRETER_BYTES
        read, write = os.pipe()
        alive, self._alive = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            for source, target in ((alive, 0), (write, 1), (write, 2)):
                os.dup2(source, target)
            os.closerange(3, 64)
            code = child_main.EXIT_ERROR
            try:
                cpu_seconds = math.ceil(limits.cpu_seconds or 0)
                code = child_main.main(limits.memory_bytes, cpu_seconds, parent, module, str(folder))
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)
        os.close(alive)
        os.close(write)
        self.stdout = os.fdopen(read, "rb")

    def wait(self, timeout: float | None = None) -> int:
        """Wait as Popen does."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            ended, status, usage = os.wait4(self.pid, 0 if deadline is None else os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
                ForkedChild.most_bytes = max(ForkedChild.most_bytes, (usage.ru_maxrss << 10) - self._shared)
            elif deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("child", timeout or 0)
            else:
                time.sleep(0.002)
        return self.returncode

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def __enter__(self) -> "ForkedChild":
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        self.stdout.close()
        os.close(self._alive)


def _warm() -> None:
    """Import what commands and their children import, and let children be forked."""
    for name in (
        "edgekit.check.checker_child", "edgekit.desktop.child", "edgekit.facts.shapes_child", "edgekit.pipeline",
        "edgekit.trim.native_child", "edgekit.trim.prove_child", "edgekit.report.facts", "onnx.reference",
        "rich.console", "rich.table",
    ):  # fmt: skip
        importlib.import_module(name)
    checking.all_rules()
    process._started = ForkedChild  # type: ignore[assignment]
    gc.collect()
    gc.freeze()  # so that the collector of a forked process does not touch, and copy, all that was imported


def judge(sample: malformed.Malformed, command: str, folder: Path, *, forked: bool) -> Outcome:
    """Make a file, run a command on it, and say what was wrong with the answer."""
    inside, outside = folder / "in", folder / "out"
    inside.mkdir()
    outside.mkdir()
    path = _made(sample, inside, folder / "path")
    before = _names(inside)
    places = {"MODEL": str(path), "OUT": str(outside / "o.onnx")}
    arguments = [places.get(word, word) for word in COMMANDS[command]]
    slow = sample.kind in SLOW_KINDS
    ran = run(arguments, folder, forked=forked, patience=SLOW_SECONDS if slow else HANG_SECONDS)
    faults = list(_faults(command, ran, SLOW_SECONDS if slow else MOST_SECONDS))
    if _names(inside) != before:
        faults.append("left something beside the model")
    if any(not name.startswith("o.") or ran.code != 0 for name in _names(outside)):
        faults.append("left something where its output belongs")
    said = next(iter((ran.err or ran.out).splitlines()), "").replace(str(folder), "")[:200]
    return Outcome(
        sample.kind, sample.name, command, ran.code, round(ran.seconds, 2), round(ran.cpu_seconds, 2), ran.peak_bytes,
        said, tuple(faults),
    )  # fmt: skip


def _made(sample: malformed.Malformed, inside: Path, note: Path) -> Path:
    """Make a file in a process of its own: what that takes must not be counted as the command's."""
    process = os.fork()
    if process == 0:
        try:
            note.write_bytes(os.fsencode(sample.make(inside)))
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    return Path(os.fsdecode(note.read_bytes()))


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _faults(command: str, ran: Ran, most_seconds: float) -> Iterable[str]:
    code, out, err = ran.code, ran.out, ran.err
    if code is None:
        yield f"hung for {ran.seconds:.0f} s"
    elif code < 0:
        yield f"ended by {signal.Signals(-code).name}"
    elif code not in CLEAN[command]:
        yield f"exit code {code}: {err[:300]}"
    if code is not None and min(ran.seconds, ran.cpu_seconds) > most_seconds:
        yield f"took {ran.seconds:.1f} s, {ran.cpu_seconds:.1f} s of computing"
    if ran.peak_bytes > MOST_BYTES:
        yield f"took {ran.peak_bytes / 1e6:,.0f} MB"
    if "Traceback" in out + err:
        yield "a traceback"
    if code and code > 0 and "error: " not in err and command != "check":
        yield "an exit code without a word"
    if any(not (c.isprintable() or c == "\n") for c in out + err):
        yield "control characters in what it says"


def known(log: Path, samples: Sequence[malformed.Malformed]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the runs that a log holds, of these files, by kind, name and command."""
    if not log.exists():
        return {}
    names = {(sample.kind, sample.name) for sample in samples}
    found = {}
    for line in log.read_text().splitlines():
        with suppress(ValueError):  # a sweep that was killed may have left half a line
            row = json.loads(line)
            if (row["kind"], row["name"]) in names:
                found[row["kind"], row["name"], row["command"]] = row
    return found


def work(number: int, workers: int, samples: Sequence[malformed.Malformed], log: Path, until: float) -> None:
    """Judge every ``workers``-th file from ``number`` on, until that time; a line of JSON for each command."""
    for place in range(number, len(samples), workers):
        if time.monotonic() > until:
            break
        for command in COMMANDS:
            for forked in (True, False) if place % REAL_EVERY else (False,):
                with tempfile.TemporaryDirectory(prefix="edgekit-malformed-") as name:
                    outcome = judge(samples[place], command, Path(name), forked=forked)
                if outcome.peak_bytes <= MOST_BYTES:  # what is forked has imported more than it needs
                    break
            with log.open("a") as stream:  # at once: what is written stays when the sweep is killed
                stream.write(json.dumps(asdict(outcome)) + "\n")
            if outcome.faults:
                print(outcome.kind, "|", outcome.name, "|", command, "|", "; ".join(outcome.faults), flush=True)


def sweep(samples: Sequence[malformed.Malformed], workers: int, log: Path, until: float) -> None:
    """Judge all files in some processes; what each command did is added to the log."""
    _warm()
    processes = []
    for number in range(workers):
        process = os.fork()
        if process == 0:
            try:
                work(number, workers, samples, log, until)
            except BaseException as error:
                print(f"worker {number}: {error!r}", flush=True)
                os._exit(1)
            os._exit(0)
        processes.append(process)
    if any(os.waitpid(process, 0)[1] for process in processes):
        sys.exit("A worker failed.")


def document(rows: list[dict[str, Any]], chosen_files: int, workers: int, seconds: float) -> dict[str, Any]:
    """Count outcomes by kind and command."""
    kinds: dict[str, dict[str, Any]] = {}
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["kind"], row["command"]].append(row)
    for (kind, command), found in grouped.items():
        codes = Counter(str(row["code"]) for row in found)
        kinds.setdefault(kind, {"files": len({row["name"] for row in found})})[command] = {
            "exit_codes": dict(sorted(codes.items())),
            "most_seconds": max(row["seconds"] for row in found),
            "most_cpu_seconds": max(row["cpu_seconds"] for row in found),
            "most_mb": round(max(row["peak_bytes"] for row in found) / 1e6),
            "faults": sum(bool(row["faults"]) for row in found),
        }
    return {
        "versions": {name: version(name) for name in ("onnx", "onnxruntime", "onnx-ir", "protobuf")},
        "workers": workers,
        "seconds": round(seconds),
        "files_in_corpus": chosen_files,
        "files": sum(kind["files"] for kind in kinds.values()),
        "runs": len(rows),
        "faults": [row for row in rows if row["faults"]],
        "slowest": sorted(rows, key=lambda row: -row["cpu_seconds"])[:10],
        "largest": sorted(rows, key=lambda row: -row["peak_bytes"])[:10],
        "kinds": kinds,
    }


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    heads = "".join(f"{command + ': exit codes':34}{'s':>6}{'CPU s':>7}{'MB':>6}  " for command in COMMANDS)
    print(f"\n{'kind':18}{'files':>6}  {heads}")
    for kind, found in result["kinds"].items():
        cells = []
        for command in COMMANDS:
            row = found[command]
            codes = ", ".join(f"{code}: {count}" for code, count in row["exit_codes"].items())
            cells.append(f"{codes:34}{row['most_seconds']:>6}{row['most_cpu_seconds']:>7}{row['most_mb']:>6}  ")
        print(f"{kind:18}{found['files']:>6}  " + "".join(cells))
    print(f"\n{result['files']:,} files, {result['runs']:,} runs, {len(result['faults'])} faults")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th file of each kind")
    parser.add_argument("--kind", action="append", help="only this kind; repeatable")
    parser.add_argument(
        "--log",
        type=Path,
        help="write each run there as a line, and do not repeat what is in it: a sweep that was stopped goes on",
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no file after this time")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "malformed.json")
    return parser.parse_args()


def chosen(every: int, kinds: list[str] | None) -> list[malformed.Malformed]:
    """Return the files that are asked for: of each kind every N-th, and its last where it has fewer."""
    by_kind: dict[str, list[malformed.Malformed]] = defaultdict(list)
    for sample in malformed.corpus():
        if kinds is None or sample.kind in kinds:
            by_kind[sample.kind].append(sample)
    return [sample for files in by_kind.values() for sample in files[every - 1 :: every] or files[-1:]]


def main_() -> None:
    """Sweep, print the table, write it as JSON; exit with 1 where a command was at fault."""
    asked = parse()
    samples = chosen(asked.every, asked.kind)
    random.Random(0).shuffle(samples)  # noqa: S311  so that kinds that take long are spread over the workers
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="edgekit-malformed-") as name:
        log = asked.log or Path(name) / "log"
        done = known(log, samples)
        write_atomic(log, "".join(json.dumps(row) + "\n" for row in done.values()).encode())
        left = [s for s in samples if any((s.kind, s.name, command) not in done for command in COMMANDS)]
        sweep(left, asked.workers, log, started + asked.seconds)
        rows = list(known(log, samples).values())
    result = document(rows, len(samples), asked.workers, time.monotonic() - started)
    show(result)
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(asked.output, json_bytes(result))
    sys.exit(bool(result["faults"]))


if __name__ == "__main__":
    main_()
