"""Measure on this device: the cold start, the time of an inference, memory, heat."""

import time
from dataclasses import dataclass

from edgekit.bundle.open import Bundle, load_cases
from edgekit.desktop.exchange import StoredFeed
from edgekit.device import health
from edgekit.device.config import Session
from edgekit.device.engine import Engine
from edgekit.errors import ModelError

_WARM_UPS = 3
_CHUNK = 20


@dataclass(frozen=True)
class Bench:
    """What was measured; times in milliseconds. None: the system does not tell.

    ``cold_start_ms``: from the start of the process to its first answer. ``runs``: how many were timed, after some
    that were not. ``hottest_celsius``: while they ran.
    """

    device: str
    runtime_version: str
    threads: int
    case: str
    cold_start_ms: float | None
    create_ms: float
    first_run_ms: float
    runs: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    peak_bytes: int | None
    hottest_celsius: float | None
    megahertz: float | None
    throttled: tuple[str, ...] | None


def bench(bundle: Bundle, settings: Session, *, seconds: float, most_runs: int) -> Bench:
    """Run the first golden case for ``seconds``, at most ``most_runs`` times. Raises ModelError where it cannot run."""
    engine = Engine(bundle, settings)
    cases = load_cases(bundle).cases
    case = next((one for one in cases if one.feed_back is None), cases[0])
    first = engine.run(StoredFeed(case.inputs, None, 1))
    if first.error is not None:
        raise ModelError(f"The model does not run on case '{case.id}': {first.error}")
    since = health.seconds_since_start()
    engine.run(StoredFeed(case.inputs, None, _WARM_UPS))
    times: list[float] = []
    heat = [health.celsius()]
    end = time.monotonic() + seconds
    while len(times) < most_runs and (time.monotonic() < end or not times):
        times += engine.run(StoredFeed(case.inputs, None, min(_CHUNK, most_runs - len(times)))).run_ms
        heat.append(health.celsius())
    environment = engine.environment()
    return Bench(
        device=environment.device or "",
        runtime_version=environment.runtime_version,
        threads=environment.threads,
        case=case.id,
        cold_start_ms=None if since is None else since * 1000,
        create_ms=engine.create_ms,
        first_run_ms=first.run_ms[0],
        runs=len(times),
        p50_ms=percentile(times, 50),
        p95_ms=percentile(times, 95),
        p99_ms=percentile(times, 99),
        peak_bytes=health.peak_bytes(),
        hottest_celsius=max((one for one in heat if one is not None), default=None),
        megahertz=health.megahertz(),
        throttled=health.throttled(),
    )


def percentile(times: list[float], share: int) -> float:
    """Return the smallest of ``times`` that ``share`` per cent of them do not exceed (nearest rank)."""
    ordered = sorted(times)
    return ordered[max(0, -(-share * len(ordered) // 100) - 1)]
