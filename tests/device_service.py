"""The service of a Linux bundle as it runs on a device: the bundle's own copy of the code, in a process of its own."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JSON = {"Content-Type": "application/json"}
SECONDS = 60.0


@dataclass(frozen=True)
class Service:
    """A running service and its port."""

    port: int
    process: "subprocess.Popen[str]"

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Send one request on a connection of its own; return status, body and headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    def infer(self, inputs: Any) -> tuple[int, Any]:
        """Run the model with inputs as JSON; return the status and what was answered."""
        status, body, _ = self.ask("POST", "/infer", json.dumps({"inputs": inputs}).encode(), JSON)
        return status, json.loads(body)

    def resident_bytes(self) -> int:
        """What the process holds in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024  # type: ignore[index]


@contextmanager
def running(
    bundle: Path, settings: str = "", environment: Mapping[str, str] | None = None, port: int = 0
) -> Iterator[Service]:
    """Start the service with a configuration, and yield it once it serves; it is killed at the end.

    ``port`` 0: any free one.
    """
    config = bundle.parent / f"config-{os.urandom(4).hex()}.toml"
    config.write_text(settings)
    variables = {**os.environ, "PYTHONPATH": str(bundle / "lib"), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
    process = subprocess.Popen(
        [sys.executable, "-m", "edgekit.device.main", "--bundle", str(bundle), "--config", str(config), "serve",
         "--port", str(port)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=variables,
    )  # fmt: skip
    assert process.stderr is not None
    said: list[str] = []
    try:
        while (line := process.stderr.readline()) and "Serving" not in line:
            said.append(line)
        found = re.search(r":(\d+)/", line)
        assert found, "".join(said)
        # What it says later must not fill the pipe, nor be lost.
        reader = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
        reader.start()
        yield Service(int(found[1]), process)
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stderr.close()
    assert not [line for line in said if "ended with" in line], said
