"""A page as an app on a phone: installed over adb, opened, replayed through its DevTools, judged.

No phone takes part: the adb server is scripted, though it speaks the protocol, and Chromium stands for the WebView.
What is real: the APK and its assets, paths and headers, the page, the runtime, the model, the DevTools protocol.
"""

import json
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_bundle
from adb_server import Phone, running
from android_bundle import needs
from apk_reading import tool
from phone import WebViewPhone, browsing

from edgekit import resources
from edgekit.bundle.open import open_bundle
from edgekit.cli.main import run
from edgekit.kinds import android
from edgekit.targets.options import WEB

pytestmark = [
    pytest.mark.browser,
    needs("apk", "tests"),
    pytest.mark.xdist_group("adb webview"),
]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the sample model, and its app beside it."""
    folder = tmp_path_factory.mktemp("page") / "bundle"
    model = resources.root("examples") / "digits" / "digits.onnx"
    options = ["--no-trim-runtime", "--no-strength", "--title", "Digits", "--app-id", "com.example.digits"]
    assert run(["build", str(model), "--target", "android", "--apk", *options, "-o", str(folder), "--json"]) == 0
    return folder


def test_the_app_beside_the_bundle_is_one_that_can_be_installed(bundle: Path) -> None:
    assert open_bundle(bundle).manifest.kind == WEB
    app = bundle.with_name("bundle.apk")
    tool("apksigner", "verify", app)
    tool("zipalign", "-c", "-p", "4", app)
    assert "package: name='com.example.digits'" in tool("aapt2", "dump", "badging", app)


def test_the_table_of_its_sizes_leaves_nothing_out(bundle: Path) -> None:
    app = bundle.with_name("bundle.apk")
    rows = {row.name: row for row in android.apk_sizes(app)}
    assert set(rows) == {
        "model",
        "runtime",
        "code",
    }  # built without a cut runtime, and so without a stock one beside it
    with zipfile.ZipFile(app) as archive:
        assert sum(row.raw_bytes for row in rows.values()) == sum(entry.file_size for entry in archive.infolist())
    assert rows["model"].raw_bytes == open_bundle(bundle).folder.joinpath("model/model.onnx").stat().st_size


@pytest.fixture
def phone(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebViewPhone]:
    phone = WebViewPhone("R58N")
    with running(phone) as server:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.port))
        yield phone
        phone.switch_off()


def test_the_page_of_an_app_passes_at_its_own_origin_with_its_own_headers(
    bundle: Path, phone: WebViewPhone, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["parity", str(bundle), "--device", "adb://R58N", "--repeats", "1", "--json"])
    out, err = capsys.readouterr()
    assert code == 0, f"{out}{err}"
    verdict = json.loads(out)["verdict"]
    assert verdict["status"] == "passed"
    assert verdict["compared"] == verdict["expected"] > 0
    environment = verdict["environment"]
    assert (environment["variant"], environment["threads"]) == ("wasm", 1)
    # Installed under an id of its own, and gone again; its debug key lets DevTools in.
    said = [command for command in phone.asked if not command.startswith("pm install")]
    assert "am start -W -n edgekit.app.digits.parity/edgekit.webview.PageActivity" in said
    assert said[-1] == "pm uninstall edgekit.app.digits.parity"
    assert any(command.startswith("rm -f /data/local/tmp/edgekit-") for command in said)


def test_the_twin_a_page_that_answers_wrongly_fails(
    phone: WebViewPhone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tiny_bundle.make(tmp_path / "wrong", {"page.js": tiny_bundle.script(output="[1, 2]")})
    code = run(["parity", str(bundle.folder), "--device", "adb://R58N", "--json"])
    out, err = capsys.readouterr()
    assert code == 6, f"{out}{err}"
    assert json.loads(out)["verdict"]["status"] == "failed"


def test_a_page_that_loads_from_elsewhere_did_not_run(
    phone: WebViewPhone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tiny_bundle.script(before="await fetch('https://elsewhere.example/').catch(() => {});")
    bundle = tiny_bundle.make(tmp_path / "bad", {"page.js": script})
    assert run(["parity", str(bundle.folder), "--device", "adb://"]) == 6
    assert "tried to load from elsewhere: https://elsewhere.example/" in capsys.readouterr().out


def test_an_app_that_ends_in_the_middle_did_not_run(
    phone: WebViewPhone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the wait ends at once, not with the time that it may take; what the page said before is told."""

    def die_soon(path: str) -> None:
        if "parity=1" in path:  # the page is being opened by whoever asks it
            threading.Timer(1.0, phone.switch_off).start()

    phone.on_request = die_soon
    script = b"console.log('still here'); await new Promise(() => {});"
    bundle = tiny_bundle.make(tmp_path / "slow", {"page.js": script})
    begun = time.monotonic()
    assert run(["parity", str(bundle.folder), "--device", "adb://R58N", "--timeout", "120"]) == 6
    assert time.monotonic() - begun < 60
    out, err = capsys.readouterr()
    assert "The connection to the page ended" in out + err
    assert "still here" in out + err


def test_what_cannot_be_is_said_before_anything_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tiny_bundle.make(tmp_path / "bundle").folder)
    with running(Phone("a", "unauthorized")) as server:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.port))
        assert run(["parity", folder, "--device", "adb://a"]) == 4
        assert "allow this computer" in capsys.readouterr().err
        assert run(["parity", folder, "--device", "adb://a/firefox"]) == 2
        assert run(["parity", folder, "--device", "adb://a;rm"]) == 2
        assert server.phones[0].asked == []
        capsys.readouterr()


def test_chrome_on_the_phone_opens_the_page_that_is_served_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over the cable: its DevTools forwarded, this machine's port reversed, and both undone."""
    phone = Phone("R58N")
    bundle = tiny_bundle.make(tmp_path / "bundle")
    with running(phone) as server, browsing("https://start.invalid", 9, tmp_path) as devtools:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.port))
        phone.sockets["localabstract:chrome_devtools_remote"] = devtools
        code = run(["parity", str(bundle.folder), "--device", "adb://R58N/chrome", "--json"])
        out, err = capsys.readouterr()
        assert code == 0, f"{out}{err}"
        assert json.loads(out)["verdict"]["status"] == "passed"
        made, undone = server.reversed
        assert made.removeprefix("reverse:forward:").split(";")[0] == undone.removeprefix("reverse:killforward:")
        assert not server.forwards
    assert phone.installed == []
