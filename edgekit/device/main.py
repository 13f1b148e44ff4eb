"""``edgekit-run``: run a bundle's model on this device. Standard library, numpy and onnxruntime alone."""

import argparse
import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from edgekit import errors
from edgekit.bundle.open import Bundle
from edgekit.device import config as configs
from edgekit.device.config import Config
from edgekit.errors import EdgekitError, UsageError

_BUNDLE = Path(__file__).resolve().parents[3]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks, and return the exit code: as edgekit's own, 0 done, 2 usage, 3 the model, ...."""
    parsed = _parser().parse_args(arguments)
    try:
        config = configs.load(parsed.config) if parsed.config else configs.load(parsed.bundle / configs.NAME)
        _look_at_cores(config.session.cores, strict=parsed.work is not _parity)
        return int(parsed.work(parsed, config))
    except EdgekitError as error:
        _say(f"edgekit-run: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
        return error.exit_code
    except MemoryError:
        _say("edgekit-run: The memory of this device does not suffice.")
        return errors.LimitError.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edgekit-run", description="Run this bundle's model: once, as a service, to prove it, or to measure it."
    )
    parser.add_argument("--bundle", type=Path, default=_BUNDLE, help="the bundle's folder (default: where this lies)")
    parser.add_argument("--config", type=Path, help="the configuration (default: config.toml of the bundle)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run one input, and print the outputs as JSON")
    run.add_argument("input", type=Path, help=".json, .safetensors or .npz with the model's inputs by name")
    run.add_argument("-o", "--output", type=Path, help="write the outputs here instead: .json or .safetensors")
    run.set_defaults(work=_run)

    serve = commands.add_parser("serve", help="serve inferences over HTTP")
    serve.add_argument("--host", help="listen here instead of where the configuration says")
    serve.add_argument("--port", type=int, help="0: any free one")
    serve.set_defaults(work=_serve)

    parity = commands.add_parser("parity", help="replay the golden cases, and write a run record for edgekit to judge")
    parity.add_argument("-o", "--output", type=Path, required=True, help="the folder for the record")
    parity.add_argument("--run", default="", help="the id that the record brings back")
    parity.add_argument("--case", action="append", help="this case only; repeatable")
    parity.add_argument("--repeats", type=int, default=5, help="timed runs after the first (default: 5)")
    parity.add_argument("--threads", type=int, help="instead of what the configuration says")
    parity.add_argument("--soak", type=int, default=0, help="run one case so often more")
    parity.set_defaults(work=_parity)

    bench = commands.add_parser("bench", help="measure cold start, inference, memory and heat; prints JSON")
    bench.add_argument("--seconds", type=float, default=10.0, help="how long (default: 10)")
    bench.add_argument("--runs", type=int, default=10_000, help="at most so many inferences (default: 10000)")
    bench.set_defaults(work=_bench)
    return parser


def _look_at_cores(cores: Sequence[int], *, strict: bool) -> None:
    """Say which of the cores are not there; raise UsageError where none is, if ``strict``: answers are the same on
    whatever core, and a machine that plays a device may have others.
    """
    from edgekit.device import engine

    there = engine.cores()
    missing = [core for core in cores if there and core not in there]
    if not missing:
        return
    told = f"session.cores: this machine does not give {', '.join(map(str, missing))}; it gives {_ranges(there)}."
    if strict and len(missing) == len(cores):
        raise UsageError(f"config.toml: {told}", hint="Write cores = [] to run on any.")
    _say(f"edgekit-run: {told}")


def _ranges(numbers: Collection[int]) -> str:
    """Write numbers in short: 0-3, 8."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][-1] == number - 1:
            found[-1] = [found[-1][0], number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, ends)) for ends in found)


def _opened(parsed: argparse.Namespace) -> Bundle:
    from edgekit.device import engine

    return engine.open_checked(parsed.bundle)


def _run(parsed: argparse.Namespace, config: Config) -> int:
    from edgekit.device import once

    said = once.run(_opened(parsed), config.session, parsed.input, parsed.output)
    if said is not None:
        sys.stdout.write(said)
    return 0


def _serve(parsed: argparse.Namespace, config: Config) -> int:
    from edgekit.device import server

    changes = {key: value for key in ("host", "port") if (value := getattr(parsed, key)) is not None}
    changed = replace(config, server=replace(config.server, **changes))
    configs.check(changed, "The command line")
    return server.serve(_opened(parsed), changed, _say)


def _parity(parsed: argparse.Namespace, config: Config) -> int:
    from edgekit.device import replay

    if parsed.repeats < 0 or parsed.soak < 0:
        raise UsageError("--repeats and --soak are 0 or more.")
    session = config.session if parsed.threads is None else replace(config.session, threads=parsed.threads)
    options = replay.ReplayOptions(
        run=parsed.run,
        cases=None if parsed.case is None else tuple(parsed.case),
        repeats=parsed.repeats,
        soak=parsed.soak,
    )
    record = replay.replay(_opened(parsed), session, options)
    replay.write(parsed.output, record)
    done = sum(case.status == "done" for case in record.cases)
    _say(f"{done} of {len(record.cases)} golden cases done; record in {parsed.output}. edgekit judges it.")
    return 0


def _bench(parsed: argparse.Namespace, config: Config) -> int:
    from edgekit.device import bench

    found: dict[str, Any] = asdict(
        bench.bench(_opened(parsed), config.session, seconds=parsed.seconds, most_runs=max(1, parsed.runs))
    )
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
