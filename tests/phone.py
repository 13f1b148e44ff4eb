"""A phone made of real parts: an adb server that speaks the protocol, and Chromium in the place of the WebView.

The app that adb installs is opened: its assets are served over https as its own code would answer (AssetAnswers.smali),
and Chromium finds them at the app's origin. Its DevTools stand behind the socket that a WebView opens.
"""

import datetime
import http.server
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from adb_server import Answer, Phone
from apk_reading import Answers
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from edgekit.runners import browsers

PID = 4242


@contextmanager
def serving(answers: Answers, folder: Path, told: Callable[[str], None]) -> Iterator[int]:
    """Serve what an app would answer, over https, at a port of this machine; ``told`` hears of each request's path."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            told(self.path)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            given = answers.get(self.command, unquote(urlsplit(self.path).path)[1:])
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(given.body)))
            self.end_headers()
            self.wfile.write(given.body)

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(folder, answers.index["host"]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a browser that closes a connection
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _certificate(folder: Path, host: str) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "app.pem").write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return folder / "app.pem"


@contextmanager
def browsing(origin: str, port: int, folder: Path) -> Iterator[int]:
    """Open ``origin`` in a headless Chromium that finds it at ``port``; yield the port of its DevTools."""
    program = browsers.find(None, None)
    sandbox = [] if browsers.can_sandbox() else ["--no-sandbox"]
    command = [
        str(program.path), "--headless=new", *sandbox, "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={folder / 'profile'}", "--remote-debugging-port=0", "--ignore-certificate-errors",
        f"--host-resolver-rules=MAP {urlsplit(origin).hostname}:443 127.0.0.1:{port}", f"{origin}/",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    told = folder / "profile" / "DevToolsActivePort"
    try:
        end = time.monotonic() + 60
        while not (told.is_file() and told.read_text().count("\n")):
            assert process.poll() is None, "Chromium ended"
            assert time.monotonic() < end, "Chromium opened no DevTools"
            time.sleep(0.05)
        yield int(told.read_text().split("\n")[0])
    finally:
        process.terminate()
        process.wait(30)


class WebViewPhone(Phone):
    """A phone that starts what is installed on it."""

    def __init__(self, serial: str) -> None:
        super().__init__(serial)
        self._open: list[object] = []
        self.on_request: Callable[[str], None] = lambda path: None
        self.commands |= {
            "am start": self._start,
            "pidof": lambda _: (f"{PID}\n".encode(), b"", 0),
            "cat /proc/net/unix": (f"Num RefCount\n0: 00000002 0 @webview_devtools_remote_{PID}\n".encode(), b"", 0),
        }

    def _start(self, command: str) -> Answer:
        folder = Path(self._enter(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        (folder / "app.apk").write_bytes(self.installed[-1])
        answers = Answers(folder / "app.apk")
        port = self._enter(serving(answers, folder, lambda path: self.on_request(path)))
        self.sockets[f"localabstract:webview_devtools_remote_{PID}"] = self._enter(
            browsing(answers.origin, port, folder)
        )
        return b"Status: ok\nComplete\n", b"", 0

    def _enter(self, manager):  # type: ignore[no-untyped-def]
        entered = manager.__enter__()
        self._open.append(manager)
        return entered

    def switch_off(self) -> None:
        """End what was started, the last first."""
        while self._open:
            self._open.pop().__exit__(None, None, None)  # type: ignore[attr-defined]
