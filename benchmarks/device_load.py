"""Put the service of a Linux bundle under load: 200 clients at once, 10,000 requests, hostile ones, and kill -9 twice.

Run ``python benchmarks/device_load.py [--clients N] [--requests N] [--output FILE]``. The service is the bundle's own
copy of the code, on this machine's processor, started again by this script when it is killed, as systemd would. Every
request is asked until it is answered with 200; an answer that is wrong, or a request that gets none, ends the run with
exit code 1. Beside the clients, others send malformed and oversized bodies, trickle in bytes, or say nothing. Memory is
what the service held after a tenth of the requests and at the end, in the half of the run without a kill.
"""

import argparse
import http.client
import json
import os
import platform
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import device_service  # noqa: E402
import linux_bundle  # noqa: E402
from device_service import Service  # noqa: E402

HOSTILE = (
    b'POST /infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"inputs"',
    b"POST /infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n",
    b"POST /infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
    b"\x00\xff" * 500 + b"\r\n\r\n",
    b"GET / HTT",
    b"",
)
SETTINGS = "[session]\nthreads = 1\n[server]\nwaiting = 16\nrequest_seconds = 3.0\n"


class Supervisor:
    """Keeps one service running on one port, and kills it when told to."""

    def __init__(self, bundle: Path, port: int) -> None:
        self.bundle, self.port = bundle, port
        self._turn = threading.Event()
        self._end = threading.Event()
        self.up = threading.Event()
        self.service: Service | None = None
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self._end.is_set():
            self._turn.clear()
            with device_service.running(self.bundle, SETTINGS, port=self.port) as service:
                self.service = service
                self.up.set()
                self._turn.wait()  # leaving the block kills it

    def kill(self) -> None:
        """End the service with SIGKILL; it is started again."""
        self.up.clear()
        self._turn.set()
        self.up.wait()

    def stop(self) -> None:
        """End."""
        self._end.set()
        self._turn.set()
        self.thread.join()


def ask(service: Service, value: int, seen: Counter[str], times: list[float]) -> bool:
    """Ask until there is an answer; return whether it is right."""
    while True:
        started = time.perf_counter()
        try:
            status, told = service.infer({"x": [[value, 1]], "n": [value]})
        except (OSError, ValueError, http.client.HTTPException):  # it was killed before, or in, its answer
            seen["no answer, asked again"] += 1
            time.sleep(0.05)
            continue
        if status == 200:
            times.append(time.perf_counter() - started)
            outputs = told["outputs"]
            return outputs["y"]["data"] == [float(value), -1.0] and outputs["z"]["data"] == [value + 1]
        seen[f"{status}, asked again"] += 1
        if status != 503:
            return False
        time.sleep(random.uniform(0.01, 0.1))  # noqa: S311


def pester(port: int, end: threading.Event, seen: Counter[str]) -> None:
    """Be a bad client until the end."""
    while not end.is_set():
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                client.sendall(random.choice(HOSTILE))  # noqa: S311
                client.settimeout(5)
                answer = client.recv(64)
                seen[f"hostile: {answer.split(b' ')[1].decode() if answer.count(b' ') else 'closed'}"] += 1
        except OSError:
            seen["hostile: reset or refused"] += 1
            time.sleep(0.05)


def run(clients: int, requests: int) -> dict[str, Any]:
    """Do it all; return what was seen."""
    with tempfile.TemporaryDirectory() as name, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        supervisor = Supervisor(linux_bundle.make(Path(name)).folder, port)
        supervisor.thread.start()
        supervisor.up.wait()
        seen: Counter[str] = Counter()
        times: list[float] = []
        end = threading.Event()
        bad = [threading.Thread(target=pester, args=(port, end, seen)) for _ in range(8)]
        for one in bad:
            one.start()
        started = time.monotonic()
        first = supervisor.service
        if first is None:
            raise RuntimeError("the service did not start")

        def steady(value: int) -> bool:
            return ask(first, value, seen, times)

        with ThreadPoolExecutor(clients) as pool:
            right = list(pool.map(steady, range(requests // 10)))
            early = first.resident_bytes()
            right += list(pool.map(steady, range(requests // 10, requests // 2)))
            late = first.resident_bytes()
            calm = sum(count for what, count in seen.items() if what.startswith("no answer"))
            killer = ThreadPoolExecutor(1)
            kills = [killer.submit(lambda wait=wait: (time.sleep(wait), supervisor.kill())) for wait in (1, 1)]
            right += list(pool.map(steady, range(requests // 2, requests)))
            for one in kills:
                one.result()
        seconds = time.monotonic() - started
        end.set()
        for one in bad:
            one.join()
        supervisor.stop()
    times.sort()
    return {
        "clients": clients,
        "requests": requests,
        "answered": len(right),
        "wrong": right.count(False),
        "kills": 2,
        "seconds": round(seconds, 1),
        "seen": dict(sorted(seen.items())),
        "no answer before the first kill": calm,
        "answer_ms": {f"p{share}": round(1000 * times[share * (len(times) - 1) // 100], 1) for share in (50, 95, 99)},
        "resident_bytes": {"after a tenth": early, "after a half": late},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def main() -> int:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "device_load.json")
    options = parser.parse_args()
    found = run(options.clients, options.requests)
    text = json.dumps(found, indent=2)
    print(text)
    options.output.write_text(text + "\n")
    grown = found["resident_bytes"]["after a half"] - found["resident_bytes"]["after a tenth"]
    return 0 if found["wrong"] == 0 and found["answered"] == options.requests and grown < 16 << 20 else 1


if __name__ == "__main__":
    sys.exit(main())
