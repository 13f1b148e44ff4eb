import http.client
import json
import socket
import struct
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
import tiny_bundle
from flask import Flask

from edgekit.bundle.open import Bundle
from edgekit.errors import UsageError
from edgekit.serve.app import create_app
from edgekit.serve.inbox import Inbox, InboxLimits
from edgekit.serve.server import serving


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return tiny_bundle.make(tmp_path / "bundle")


@pytest.fixture
def url(bundle: Bundle, tmp_path: Path) -> Iterator[str]:
    with serving(create_app(bundle, Inbox(tmp_path / "in", InboxLimits(post_bytes=1 << 20)))) as at:
        yield at


def raw(url: str, request: bytes) -> bytes:
    """Send bytes that no HTTP client would send, and return the answer."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


def test_a_bundle_is_served_over_a_real_socket(url: str) -> None:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
        assert answer.read() == tiny_bundle.PAGE
        assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        assert len(answer.headers.get_all("Date") or []) == 1
        assert "Content-Disposition" not in answer.headers


def test_the_server_is_gone_after_the_block(bundle: Bundle, tmp_path: Path) -> None:
    with serving(create_app(bundle, Inbox(tmp_path / "in"))) as at:
        port = urlsplit(at).port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    with serving(create_app(bundle, Inbox(tmp_path / "in")), port=port or 0) as again:  # and its port is free
        assert urlsplit(again).port == port


@pytest.mark.parametrize(
    "target", [b"/../secret", b"/%2e%2e/secret", b"http://127.0.0.1/../secret", b"/\\..\\secret", b"*"]
)
def test_a_path_written_by_hand_reaches_nothing_else(bundle: Bundle, url: str, target: bytes) -> None:
    (bundle.folder.parent / "secret").write_text("SECRET")
    answer = raw(url, b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.split(b" ", 2)[1] in (b"404", b"400")
    assert b"SECRET" not in answer and tiny_bundle.PAGE not in answer


def test_a_name_in_the_request_line_is_checked_like_the_host_header(url: str) -> None:
    answer = raw(url, b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.split(b" ", 2)[1] == b"403"


def test_a_post_in_chunks_is_refused_because_its_length_is_not_known(url: str) -> None:
    head = b"POST /records HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert raw(url, head + b"5\r\nhello\r\n0\r\n\r\n").split(b" ", 2)[1] == b"411"


def test_a_client_that_sends_less_than_it_said_gets_no_record(url: str, tmp_path: Path) -> None:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(
            b"POST /records HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
        )
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65536).split(b" ", 2)[1] == b"400"
    assert not (tmp_path / "in").exists()


def test_a_post_that_is_too_large_hears_why_although_it_is_not_read(url: str) -> None:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    connection.request("POST", "/records", body=b"x" * (8 << 20), headers={"Host": "localhost"})
    answer = connection.getresponse()
    assert answer.status == 413
    assert "1048576 bytes" in json.loads(answer.read())["error"]
    connection.close()


def test_a_port_in_use_is_an_error_that_says_what_to_do(bundle: Bundle, tmp_path: Path, url: str) -> None:
    port = urlsplit(url).port or 0
    app = create_app(bundle, Inbox(tmp_path / "in"))
    with pytest.raises(UsageError, match=f"Port {port} on 127.0.0.1 is in use") as caught, serving(app, port=port):
        pytest.fail("two servers on one port")
    assert "--port 0" in (caught.value.hint or "")


@pytest.mark.parametrize("host", ["192.0.2.7", "no-such-host.invalid", "<script>", "2001:db8::7", "a" * 300, "\ud800"])
def test_a_host_that_is_not_of_this_machine_is_an_error(bundle: Bundle, tmp_path: Path, host: str) -> None:
    with pytest.raises(UsageError) as caught, serving(create_app(bundle, Inbox(tmp_path / "in")), host=host):
        pytest.fail("served")
    assert caught.value.hint


def test_a_loopback_address_of_the_newer_kind_is_written_as_browsers_need_it(bundle: Bundle, tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serving(create_app(bundle, Inbox(tmp_path / "in")), host="::1") as at:
        assert at.startswith("http://[::1]:")
        with urllib.request.urlopen(at, timeout=10) as answer:  # noqa: S310
            assert answer.status == 200


@pytest.mark.parametrize("host", ["", " "])
def test_an_empty_host_is_refused_and_not_taken_for_all_addresses(host: str, bundle: Bundle, tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="The host is empty"),
        serving(create_app(bundle, Inbox(tmp_path / "in")), host),
    ):
        pass


def test_what_was_sent_is_let_go_of_though_the_client_is_gone_with_its_request_half_sent() -> None:
    """werkzeug reads the rest of a request before it closes the answer, and the reset of one who left ends that."""
    closed = threading.Event()
    connection = socket.socket()

    class Answer:
        def __iter__(self) -> Iterator[bytes]:
            yield b"some of it"
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()  # with a reset

        def close(self) -> None:
            closed.set()

    def app(_: object, start_response: Callable[..., object]) -> Answer:
        start_response("200 OK", [("Content-Length", "1000")])
        return Answer()

    with serving(cast(Flask, app)) as at:
        parts = urlsplit(at)
        connection.connect((parts.hostname, parts.port))
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
        assert closed.wait(10)
