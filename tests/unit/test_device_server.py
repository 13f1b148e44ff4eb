"""The service, asked over real sockets: right answers, and an error for everything else."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

import device_service
import linux_bundle
import numpy as np
import onnx
import onnx.parser
import pytest
from device_service import JSON, Service

from edgekit.device import ranks
from edgekit.records import tensors

pytestmark = pytest.mark.xdist_group("device-service")
RIGHT = {"x": [[3, 4]], "n": [1]}
SAFETENSORS = {"Content-Type": "application/vnd.safetensors"}
# A model that takes long: a loop of so many steps as it is told.
SLOW = """
<ir_version: 8, opset_import: ["" : 17]>
slow (float[N, 2] x, int64[1] n) => (float[N, 2] y, int64[1] z)
<float[2] w = {1, -1}, int64[1] one = {1}, bool yes = {1}, int64 steps = {5000000}>
{
  y = Mul(x, w)
  big = ReduceMax <keepdims = 0> (x)
  limit = Constant <value_float = 1000.0> ()
  long = Greater(big, limit)
  zero = Sub(one, one)
  many = If (long) <
    then_branch = a () => (int64 m) { m = Identity(steps) },
    else_branch = b () => (int64 m) { m = Squeeze(one) }
  >
  end = Loop (many, yes, zero) <
    body = step (int64 i, bool c, int64[1] s) => (bool d, int64[1] t) { d = Identity(c)  t = Add(s, one) }
  >
  back = Sub(end, end)
  count = Add(n, one)
  z = Add(count, back)
}
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    bundle = linux_bundle.make(tmp_path_factory.mktemp("service"))
    limits = "[session]\nthreads = 1\n[server]\nrequest_bytes = 100000\nrequest_seconds = 1.0\n"
    with device_service.running(bundle.folder, limits) as started:
        yield started


def test_json_gives_the_model_s_answer(service: Service) -> None:
    status, told = service.infer(RIGHT)
    assert status == 200
    assert told["outputs"]["y"] == {"dtype": "float32", "shape": [1, 2], "data": [3.0, -4.0]}
    assert told["outputs"]["z"]["data"] == [2] and told["run_ms"] >= 0


def test_safetensors_give_safetensors_or_json_as_asked(service: Service) -> None:
    body = tensors.encode({"x": np.float32([[1, 2], [3, 4]]), "n": np.int64([7])})
    status, answer, headers = service.ask("POST", "/infer", body, SAFETENSORS)
    assert (status, headers["Content-Type"]) == (200, "application/vnd.safetensors")
    assert tensors.decode(answer, "it")["y"].tolist() == [[1, -2], [3, -4]]
    status, answer, _ = service.ask("POST", "/infer", body, {**SAFETENSORS, "Accept": "application/json"})
    assert json.loads(answer)["outputs"]["z"]["data"] == [8]


def test_it_says_what_it_serves_and_how_it_is(service: Service) -> None:
    about = json.loads(service.ask("GET", "/")[1])
    assert about["inputs"]["x"]["dtype"] == "float32" and set(about["outputs"]) == {"y", "z"}
    assert service.ask("GET", "/healthz")[:2] == (200, b'{"status": "ok"}')
    service.infer(RIGHT)
    status, text, headers = service.ask("GET", "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = text.decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values['edgekit_requests_total{code="200"}']) >= 3
    assert float(values["edgekit_inference_seconds_count"]) >= 1
    assert values['edgekit_inference_seconds_bucket{le="+Inf"}'] == values["edgekit_inference_seconds_count"]
    assert float(values["process_resident_memory_bytes"]) > 1e6


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "said"),
    [
        ("GET", "/nothing", None, {}, 404, "nothing at"),
        ("GET", "/infer", None, {}, 405, "takes POST"),
        ("POST", "/healthz", b"", JSON, 405, "takes GET"),
        ("BREW", "/infer", None, {}, 405, "takes POST"),
        ("POST", "/infer", b"{}", {}, 415, "application/json"),
        ("POST", "/infer", b"{}", {"Content-Type": "text/html"}, 415, "application/json"),
        ("POST", "/infer", b"{}", JSON, 400, "inputs"),
        ("POST", "/infer", b'{"inputs": {"q": 1}}', JSON, 400, "no input 'q'"),
        ("POST", "/infer", b'{"inputs": {"n": [1]}}', JSON, 400, "no value is given for 'x'"),
        ("POST", "/infer", b'{"inputs": {"x": [[1, 2, 3]], "n": [1]}}', JSON, 400, "does not take"),
        ("POST", "/infer", b"{}", {**JSON, "Content-Encoding": "gzip"}, 415, "no Content-Encoding"),
        ("POST", "/infer", b"xx", SAFETENSORS, 400, "not a safetensors file"),
        ("POST", "/infer", b"x" * 100_001, JSON, 413, "100,000 bytes"),
        ("POST", "/infer", b"[" * 99_999, JSON, 400, "not JSON"),
    ],
)
def test_a_request_that_cannot_be_is_an_error_in_words(
    service: Service, method: str, path: str, body: bytes | None, headers: dict[str, str], status: int, said: str
) -> None:
    got, answer, _ = service.ask(method, path, body, headers)
    assert (got, said in json.loads(answer)["error"]) == (status, True), answer
    assert service.infer(RIGHT)[0] == 200


POST = b"POST /infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
RAW = [
    (b"GARBAGE\r\n\r\n", b"400"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
    (b"GET / HTTP/9.9\r\n\r\n", b"505"),
    (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
    (b"GET / HTTP/1.1\r\n" + b"".join(b"A%d: b\r\n" % n for n in range(200)) + b"\r\n", b"431"),
    (POST + b"\r\n", b"411"),
    (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
    (POST + b"Content-Length: -5\r\n\r\n", b"400"),
    (POST + b"Content-Length: 1e3\r\n\r\n", b"400"),
    (POST + b"" + b"Content-Length: 2\r\n" * 2 + b"\r\n{}", b"400"),
    (POST + b"Content-Length: 9999999999999999999\r\n\r\n", b"400"),
    (b"GET /healthz HTTP/1.1\r\n\r\n", b"400"),
    (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", b"400"),
    (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
    (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 1\r\n\r\n", b"400"),
    (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length : 5\r\n\r\nhello", b"400"),
    (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: b\rContent-Length: 5\r\n\r\nhello", b"400"),
    (b"GET /healthz HTTP/1.0\r\n\r\n", b"200"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "status"), RAW)
def test_what_is_no_http_is_refused_and_the_connection_ended(service: Service, sent: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as client:
        client.sendall(sent)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.split(b" ")[1] == status, answer[:100]
    assert service.infer(RIGHT)[0] == 200


@pytest.mark.parametrize("head", [b"GET /healthz", b"HEAD /healthz", b"OPTIONS /healthz", b"GET /nothing"])
def test_a_body_that_nobody_reads_is_not_taken_for_a_request(service: Service, head: bytes) -> None:
    hidden = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as client:
        client.sendall(head + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(hidden) + hidden)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 ") == 1 and b"Connection: close" in answer


def test_whoever_waits_to_send_is_told_to_only_where_the_body_is_taken(service: Service) -> None:
    body = json.dumps({"inputs": RIGHT}).encode()
    head = b"POST /infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    for length, status in ((len(body), b"100"), (100_001, b"413")):
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as client:
            client.sendall(head + b"Content-Length: %d\r\n\r\n" % length)
            assert client.recv(65536).split(b" ")[1] == status
            if status == b"100":
                client.sendall(body)
                assert client.recv(65536).split(b" ")[1] == b"200"


def test_a_shape_that_the_model_leaves_open_is_null(tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    model = f"""{head} open (float[] x, int64[1] n) => (float[] y, int64[1] z)
    <float[2] w = {{1, -1}}, int64[1] one = {{1}}> {{ y = Mul(x, w)  z = Add(n, one) }}"""
    bundle = linux_bundle.make(tmp_path, model=model)
    with device_service.running(bundle.folder) as service:
        told = json.loads(service.ask("GET", "/")[1])
    assert told["inputs"]["x"] == {"dtype": "float32", "shape": None} and told["inputs"]["n"]["shape"] == [1]
    number = onnx.parser.parse_model(f"{head} g (float s, float[] x) => (float t) {{ t = Neg(s) }}")
    (tmp_path / "number.onnx").write_bytes(number.SerializeToString())
    assert ranks.unknown(tmp_path / "number.onnx") == {"x"}
    for no_model in (b"", b"\xff" * 20, number.SerializeToString()[:-3]):
        (tmp_path / "number.onnx").write_bytes(no_model)
        assert ranks.unknown(tmp_path / "number.onnx") == set()


def test_one_connection_takes_request_after_request(service: Service) -> None:
    body = json.dumps({"inputs": RIGHT}).encode()
    request = POST + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as client:
        client.sendall(request * 3)  # pipelined, too
        answer = b""
        while answer.count(b'"run_ms"') < 3 and (part := client.recv(65536)):
            answer += part
    assert answer.count(b"HTTP/1.1 200") == 3


@pytest.mark.parametrize(
    "beginning",
    [b"", b"POST /infer HTT", POST + b"Content-Length: 50\r\n\r\n{"],
)
def test_a_slow_client_loses_its_connection_and_no_one_else_waits(service: Service, beginning: bytes) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as client:
        client.sendall(beginning)
        started = time.monotonic()
        assert service.infer(RIGHT)[0] == 200 and time.monotonic() - started < 1
        while time.monotonic() - started < 15:
            try:
                if client.send(b" ") == 0 or client.recv(100, socket.MSG_DONTWAIT) == b"":
                    break
            except BlockingIOError:
                time.sleep(0.1)
            except OSError:
                break
        assert 0.5 < time.monotonic() - started < 10


def test_beyond_what_may_run_and_wait_it_says_503(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path, model=SLOW)
    settings = "[session]\nthreads = 1\n[server]\nrunning = 1\nwaiting = 1\nrun_seconds = 2.0\n"
    with device_service.running(bundle.folder, settings) as service:
        assert service.infer(RIGHT)[0] == 200
        long = {"x": [[5000, 1]], "n": [1]}
        with ThreadPoolExecutor(6) as pool:
            asked = [pool.submit(service.infer, long) for _ in range(6)]
            time.sleep(0.3)
            assert service.ask("GET", "/healthz")[0] == 200  # it lives while it works
            found = [one.result() for one in asked]
        statuses = sorted(status for status, _ in found)
        assert statuses.count(503) >= 4 and set(statuses) <= {503, 504}
        assert any("took too long" in told["error"] for status, told in found if status == 504)
        assert service.infer(RIGHT)[0] == 200  # the run that was stopped left nothing behind


def becomes(service: Service, status: int) -> bool:
    """Whether requests come to be answered so: what the service knows of other connections comes a moment later."""
    end = time.monotonic() + 30.0
    while time.monotonic() < end:
        if service.infer(RIGHT)[0] == status:
            return True
        time.sleep(0.05)
    return False


def test_beyond_its_connections_it_says_503_at_once(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path)
    with device_service.running(bundle.folder, "[server]\nconnections = 2\n") as service:
        held = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(2)]
        assert service.infer(RIGHT)[0] == 503
        for one in held:
            one.close()
        assert becomes(service, 200)


def test_who_is_sent_away_and_still_sends_reads_why(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path)
    with device_service.running(bundle.folder, "[server]\nconnections = 1\n") as service:
        address = ("127.0.0.1", service.port)
        with socket.create_connection(address), socket.create_connection(address) as late:
            late.sendall(b"POST /infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n")
            for _ in range(30):
                late.sendall(b" " * 10_000)
                time.sleep(0.005)  # a reset would come back in between
            assert late.recv(1 << 16).startswith(b"HTTP/1.1 503 ")
            late.shutdown(socket.SHUT_WR)
            assert late.recv(1) == b""


def test_bodies_together_have_a_bound_and_what_breaks_off_gives_its_share_back(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path)
    settings = "[server]\nrequest_bytes = 1000\nrequest_seconds = 60.0\n"
    with device_service.running(bundle.folder, settings) as service:
        head = POST + b"Content-Length: 1000\r\n\r\n{"
        held = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(4)]
        for one in held:
            one.sendall(head)
        assert becomes(service, 503)
        for one in held:
            one.close()
        assert becomes(service, 200)


@pytest.mark.parametrize(
    ("host", "settings", "status"),
    [
        ("localhost:8080", "", 200),
        ("127.0.0.1", "", 200),
        ("[::1]:80", "", 200),
        ("LOCALHOST", "", 200),
        ("rebound.example", "", 421),
        ("rebound.example:80", "", 421),
        ("127.0.0.1.rebound.example", "", 421),
        ("", "", 421),
        ("pi.example", '[server]\nnames = ["Pi.example"]\n', 200),
        ("rebound.example", '[server]\nhost = "0.0.0.0"\n', 200),
    ],
)
def test_a_page_whose_name_leads_here_is_refused(tmp_path: Path, host: str, settings: str, status: int) -> None:
    bundle = linux_bundle.make(tmp_path)
    with device_service.running(bundle.folder, settings) as service:
        for path in ("/healthz", "/", "/metrics"):
            assert service.ask("GET", path, headers={"Host": host})[0] == status


def flood(service: Service, clients: int, each: int, answers: list[tuple[int, bool]]) -> None:
    """Ask from many clients at once; note each answer's status, and whether an answer that was given is right."""

    def client(number: int) -> None:
        for n in range(each):
            value = number * 1000 + n
            try:
                status, told = service.infer({"x": [[value, 1]], "n": [value]})
            except (OSError, HTTPException):  # it was killed before, or in, its answer
                answers.append((0, True))
                continue
            right = status != 200 or (told["outputs"]["y"]["data"], told["outputs"]["z"]["data"]) == (
                [float(value), -1.0],
                [value + 1],
            )
            answers.append((status, right))

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))


def test_many_clients_get_right_answers_or_503_and_the_memory_stays(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path)
    with device_service.running(bundle.folder, "[session]\nthreads = 1\n[server]\nwaiting = 4\n") as service:
        answers: list[tuple[int, bool]] = []
        flood(service, 30, 4, answers)
        before = service.resident_bytes()
        flood(service, 30, 10, answers)
        assert len(answers) == 420 and all(right for _, right in answers)
        assert {status for status, _ in answers} <= {200, 503}
        assert sum(status == 200 for status, _ in answers) > 100
        assert service.resident_bytes() < before + (8 << 20)


def test_killed_in_the_middle_it_gave_no_wrong_answer_and_starts_again(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path)
    answers: list[tuple[int, bool]] = []
    with device_service.running(bundle.folder) as service:

        def kill() -> None:
            while len(answers) < 40:
                time.sleep(0.001)
            service.process.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        flood(service, 10, 40, answers)
        killer.join()
        assert service.process.wait(10) == -signal.SIGKILL
    assert len(answers) == 400 and all(right for _, right in answers)
    assert 0 < sum(status == 200 for status, _ in answers) < 400
    with device_service.running(bundle.folder) as service:
        assert service.infer(RIGHT)[0] == 200


def test_told_to_stop_it_answers_what_it_accepted_and_ends_well(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path, model=SLOW)
    with device_service.running(bundle.folder, "[server]\nrun_seconds = 3.0\n") as service:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(service.infer, {"x": [[5000, 1]], "n": [1]})
            while b"edgekit_running 1" not in service.ask("GET", "/metrics")[1]:
                time.sleep(0.01)
            service.process.send_signal(signal.SIGTERM)
            status, _ = asked.result()
        assert status in (200, 504)  # an answer, whichever came first
        assert service.process.wait(20) == 0


def test_systemd_hears_that_it_is_ready_lives_and_stops(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path)
    place = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(place))
        systemd.settimeout(20)
        environment = {"NOTIFY_SOCKET": str(place), "WATCHDOG_USEC": "1500000"}
        with device_service.running(bundle.folder, environment=environment) as service:
            heard = [systemd.recv(100) for _ in range(3)]
            assert heard == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
            service.process.send_signal(signal.SIGTERM)
            while (word := systemd.recv(100)) == b"WATCHDOG=1":
                pass
            assert word == b"STOPPING=1"


def test_a_port_that_is_taken_is_an_error_in_words(service: Service, tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path)
    command = [*service.process.args[:-1], str(service.port)]  # type: ignore[index]
    command[command.index("--bundle") + 1] = str(bundle.folder)
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(bundle.folder / "lib")})  # fmt: skip
    assert done.returncode == 2 and f"Cannot listen on 127.0.0.1:{service.port}" in done.stderr
    assert "Traceback" not in done.stderr
