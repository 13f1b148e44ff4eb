"""Measure edgekit on this machine, in one run, and record what was measured as JSON.

Run ``python benchmarks/measure.py [--output FILE]``. Needs an installed edgekit and a browser. ``README.md`` beside
this file says what the numbers mean.
"""

import argparse
import datetime
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from edgekit import __version__, resources
from edgekit.files import json_bytes, write_atomic
from edgekit.targets import load as targets

RESULTS = Path(__file__).resolve().parent / "results"
START_UP_RUNS = 10
CLI = [sys.executable, "-c", "from edgekit.cli.main import main; main()"]


def start_up() -> dict[str, list[float]]:
    """Return the CPU seconds of whole processes that only show help or version, sorted."""
    measured = {}
    for argument in ("--help", "--version"):
        seconds = []
        for _ in range(START_UP_RUNS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([*CLI, argument], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 4))
        measured[argument] = sorted(seconds)
    return measured


def timed(*arguments: str) -> tuple[float, int, Any]:
    """Run a command with --json; return its seconds, its exit code and what it answered."""
    start = time.perf_counter()
    done = subprocess.run([*CLI, *arguments, "--json"], capture_output=True, text=True, check=False)
    seconds = round(time.perf_counter() - start, 2)
    if not done.stdout:
        sys.exit(f"edgekit {arguments[0]} failed:\n{done.stderr}")
    return seconds, done.returncode, json.loads(done.stdout)


def sizes(bundle: Path) -> dict[str, int]:
    """Return the bytes of all files of a bundle: raw, and with the precompressed copies where there are any."""
    files = [path for path in bundle.rglob("*") if path.is_file() and path.suffix not in {".br", ".gz"}]
    total = {"raw_bytes": sum(path.stat().st_size for path in files)}
    for name, ending in (("gzip_bytes", ".gz"), ("brotli_bytes", ".br")):
        copies = [path.with_name(path.name + ending) for path in files]
        total[name] = sum((c if c.exists() else p).stat().st_size for p, c in zip(files, copies, strict=True))
    return total


def target(target_id: str, work: Path) -> dict[str, Any]:
    """Build the sample model for one target and verify it."""
    digits = resources.root("examples") / "digits"
    bundle = work / target_id
    build = ["build", str(digits / "digits.onnx"), "--sample", str(digits / "samples.npz"), "--target", target_id]
    build_seconds, _, _ = timed(*build, "-o", str(bundle))
    parity_seconds, code, answer = timed("parity", str(bundle), "--repeats", "50")
    verdict = answer["verdict"]
    environment = verdict["environment"] or {}
    return {
        "build_seconds": build_seconds,
        "parity_seconds": parity_seconds,
        **sizes(bundle),
        "status": verdict["status"],
        "exit_code": code,
        "compared": verdict["compared"],
        "execution_provider": environment.get("execution_provider"),
        "variant": environment.get("variant"),
        "threads": environment.get("threads"),
        "adapter": environment.get("adapter"),
        "timings": answer["timings"],
    }


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_before": [round(value, 2) for value in os.getloadavg()],
    }


def main() -> None:
    """Measure, write the file, say where it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="the file to write (default: in benchmarks/results)")
    arguments = parser.parse_args()
    today = datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d")
    output = arguments.output or RESULTS / f"{today}-{platform.machine()}-{os.cpu_count()}-cores.json"
    document: dict[str, Any] = {"date": today, "edgekit": __version__, "machine": machine(), "start_up": start_up()}
    with tempfile.TemporaryDirectory() as work:
        chosen = [target_id for target_id in targets.ids() if targets.load(target_id).demo]
        document["targets"] = {target_id: target(target_id, Path(work)) for target_id in chosen}
    write_atomic(output, json_bytes(document))
    print(f"wrote {output}")


if __name__ == "__main__":
    main()
