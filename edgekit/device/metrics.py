"""What the service counts, as Prometheus' text format shows it (version 0.0.4)."""

import threading
import time
from collections import Counter

from edgekit.device import health

# Upper bounds of the histogram's buckets, in seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts of this process. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: Counter[int] = Counter()
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0
        self._dropped = 0
        self._started = time.monotonic()

    def answered(self, status: int) -> None:
        """Count an answer."""
        with self._lock:
            self._answers[status] += 1

    def dropped(self) -> None:
        """Count a connection that was ended without an answer: a slow client, or one too many."""
        with self._lock:
            self._dropped += 1

    def ran(self, seconds: float) -> None:
        """Count an inference and its time."""
        place = next((k for k, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))
        with self._lock:
            self._buckets[place] += 1
            self._seconds += seconds

    def text(self, running: int, waiting: int) -> str:
        """Return the page of /metrics."""
        with self._lock:
            answers, buckets = dict(self._answers), list(self._buckets)
            seconds, dropped = self._seconds, self._dropped
        lines = ["# HELP edgekit_requests_total Answered requests, by status.", "# TYPE edgekit_requests_total counter"]
        lines += [f'edgekit_requests_total{{code="{code}"}} {count}' for code, count in sorted(answers.items())]
        lines += ["# HELP edgekit_inference_seconds Time of inferences.", "# TYPE edgekit_inference_seconds histogram"]
        total = 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
            total += count
            lines.append(f'edgekit_inference_seconds_bucket{{le="{bound}"}} {total}')
        lines += [f"edgekit_inference_seconds_sum {seconds:.6f}", f"edgekit_inference_seconds_count {total}"]
        heat = health.throttled()
        gauges = {
            "edgekit_running": ("Inferences that run.", running),
            "edgekit_waiting": ("Requests that wait for one.", waiting),
            "edgekit_uptime_seconds": ("Since the service started.", round(time.monotonic() - self._started, 3)),
            "process_resident_memory_bytes": ("Memory that the process holds.", health.resident_bytes()),
            "edgekit_temperature_celsius": ("The hottest zone.", health.celsius()),
            "edgekit_throttled": ("Whether power or heat slow the device now.", _now(heat)),
        }
        lines += _entry("edgekit_dropped_connections_total", "Connections ended without an answer.", dropped, "counter")
        for name, (told, value) in gauges.items():
            if value is not None:
                lines += _entry(name, told, value, "gauge")
        return "\n".join(lines) + "\n"


def _entry(name: str, told: str, value: float, kind: str) -> list[str]:
    return [f"# HELP {name} {told}", f"# TYPE {name} {kind}", f"{name} {value}"]


def _now(said: tuple[str, ...] | None) -> int | None:
    return None if said is None else int(any(one.endswith(" now") for one in said))
