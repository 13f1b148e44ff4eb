"""APKs without the Android SDK: read back by Android's own tools, by androguard, and run."""

import hashlib
import logging
import zipfile
from dataclasses import replace
from pathlib import Path

import loguru
import pytest
import tiny_bundle
from android_bundle import needs
from apk_reading import Answers, Screen, tool

from edgekit.apk import archive, assemble
from edgekit.apk.assemble import ApkOptions
from edgekit.apk.keys import PASSWORD_VARIABLE, Keystore
from edgekit.bundle.open import Bundle
from edgekit.errors import LimitError, UsageError
from edgekit.records.manifest import Manifest
from edgekit.serve import app as serve_app

pytestmark = needs("apk", "tests")

# Everything that means something to one of the languages that it passes through.
TITLE = "@string/x <b>&amp; \\n 'q' \"d\" {{ x }} ?attr é\u202e\x07"
LABEL = "@string/x <b>&amp; \\n 'q' \"d\" {{ x }} ?attr é"
ORIGIN = assemble.origin()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle with hostile names, and with a compressed copy, which an APK leaves out."""
    files = {
        "app/main.js": b"x" * 5000,
        "app/main.js.br": b"compressed",
        "model/sub dir/wéights ☃.bin": bytes(range(256)),
    }
    return tiny_bundle.make(tmp_path_factory.mktemp("bundle"), files, title=TITLE)


@pytest.fixture(scope="module")
def apk(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assemble.assemble(bundle, tmp_path_factory.mktemp("apk") / "app.apk").path


@pytest.fixture(scope="module")
def screen(apk: Path, tmp_path_factory: pytest.TempPathFactory) -> Screen:
    return Screen(apk, tmp_path_factory.mktemp("screen"))


def test_androids_own_tools_take_it(apk: Path) -> None:
    verified = tool("apksigner", "verify", "--verbose", "--print-certs", apk)
    assert "Verified using v2 scheme (APK Signature Scheme v2): true" in verified
    assert "Verified using v3 scheme (APK Signature Scheme v3): true" in verified
    assert "CN=Android Debug" in verified
    tool("zipalign", "-c", "-p", "4", apk)
    badging = tool("aapt2", "dump", "badging", apk)
    assert "package: name='edgekit.app.string_x_b_amp_n_q_d_x_attr_e_1e0549' versionCode='1'" in badging
    assert "sdkVersion:'24'\ntargetSdkVersion:'36'" in badging
    assert "launchable-activity: name='edgekit.webview.PageActivity'" in badging
    assert "uses-permission" not in badging


def test_androguard_finds_the_label_as_it_is_no_permission_and_the_code(apk: Path) -> None:
    loguru.logger.remove()  # it talks to stderr otherwise
    logging.getLogger("androguard").setLevel(logging.ERROR)
    from androguard.core.apk import APK
    from androguard.core.dex import DEX

    read = APK(str(apk))
    assert read.is_valid_APK()
    assert read.is_signed_v2()
    assert read.is_signed_v3()
    # Not get_app_name(), which takes every text that begins with "@" for a reference.
    assert read.get_attribute_value("application", "label") == LABEL
    assert read.get_permissions() == []
    assert read.get_main_activity() == assemble.ACTIVITY
    assert read.get_attribute_value("application", "debuggable") == "true"
    assert read.get_attribute_value("application", "usesCleartextTraffic") == "false"
    classes = {found.get_name() for found in DEX(read.get_dex()).get_classes()}
    assert classes == {f"Ledgekit/webview/{name};" for name in ("PageActivity", "AssetAnswers", "PictureChooser")}


def test_its_assets_are_the_files_of_the_bundle_bit_by_bit_and_no_others(apk: Path, bundle: Bundle) -> None:
    with zipfile.ZipFile(apk) as read:
        held = {name: read.read(name) for name in read.namelist() if name.startswith("assets/bundle/")}
        assert {info.date_time for info in read.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert read.getinfo("resources.arsc").compress_type == zipfile.ZIP_STORED
    listed = {entry.path for entry in bundle.manifest.files if not entry.path.endswith(".br")} | {"manifest.json"}
    assert held == {f"assets/bundle/{path}": (bundle.folder / path).read_bytes() for path in listed}


def test_the_same_bundle_and_key_give_the_same_bytes(apk: Path, bundle: Bundle, tmp_path: Path) -> None:
    assert assemble.assemble(bundle, tmp_path / "again.apk").path.read_bytes() == apk.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["again.apk"]


def test_the_apps_own_code_answers_from_the_assets_and_nothing_else(apk: Path, bundle: Bundle, screen: Screen) -> None:
    paths = ["", "page.js", "model/model.onnx?v=12", "model/sub%20dir/w%C3%A9ights%20%E2%98%83.bin", "manifest.json"]
    refused = {
        f"GET {ORIGIN}/gone": 404,
        f"GET {ORIGIN}/../edgekit.json": 404,
        f"GET {ORIGIN}/app/main.js.br": 404,
        f"POST {ORIGIN}/records": 405,
        "GET https://elsewhere.example/index.html": 403,
        f"GET {ORIGIN}:8443/index.html": 403,
        f"GET {ORIGIN.replace('https', 'http')}/index.html": 403,
        "GET file:///android_asset/edgekit.json": 403,
    }
    did = screen.run(*(f"GET {ORIGIN}/{path}" for path in paths), *refused, debuggable=True)
    assert did["debugging"] is True
    good, bad = did["answers"][: len(paths)], did["answers"][len(paths) :]
    files = ["index.html", "page.js", "model/model.onnx", "model/sub dir/wéights ☃.bin", "manifest.json"]
    assert [(a["status"], a["sha256"]) for a in good] == [
        (200, hashlib.sha256((bundle.folder / path).read_bytes()).hexdigest()) for path in files
    ]
    assert [(a["type"], a["charset"]) for a in good] == [
        ("text/html", "utf-8"),
        ("text/javascript", "utf-8"),
        ("application/octet-stream", None),
        ("application/octet-stream", None),
        ("application/json", None),
    ]
    assert [a["status"] for a in bad] == list(refused.values())
    assert {a["bytes"] for a in bad} == {0}
    assert all(a["headers"] == {**serve_app.headers(), "Cache-Control": "no-cache"} for a in did["answers"])
    assert [a["stays"] for a in bad] == [False] * 4 + [True] * 4  # where the WebView does not go
    # Beside them, the test's own reading of the APK, which other tests replay in a browser.
    answers = Answers(apk)
    assert hashlib.sha256(answers.get("GET", "page.js").body).hexdigest() == good[1]["sha256"]


def test_the_screen_keeps_files_away_and_shows_the_page(screen: Screen) -> None:
    did = screen.run(debuggable=False)
    assert did["url"] == f"{ORIGIN}/"
    assert did["settings"] == {"javascript": True, "files": False, "content": False, "place": False}
    assert did["debugging"] is False
    assert did["fits"]
    assert did["destroyed"]
    # A picture that was chosen, none, a question that another replaced, one that no app answers; another's result.
    assert did["chosen"] == ["a", "none", "given up", "nobody", "others: 1"]


def test_a_users_key_signs_and_its_app_cannot_be_debugged(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("keytool", "-genkeypair", "-keystore", tmp_path / "own.p12", "-storetype", "PKCS12", "-storepass", "secret 1",
         "-alias", "mine", "-keyalg", "RSA", "-dname", "CN=Somebody")  # fmt: skip
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret 1")
    options = ApkOptions("com.example.app", 7, "2.0-β", Keystore(tmp_path / "own.p12"))
    made = assemble.assemble(bundle, tmp_path / "app.apk", options)
    assert not made.debug
    badging = tool("aapt2", "dump", "badging", made.path)
    assert "package: name='com.example.app' versionCode='7' versionName='2.0-β'" in badging
    assert "application-debuggable" not in badging
    assert "CN=Somebody" in tool("apksigner", "verify", "--print-certs", made.path)


def test_what_cannot_be_an_app_is_refused_and_leaves_nothing(bundle: Bundle, tmp_path: Path) -> None:
    place = tmp_path / "app.apk"
    for options in (ApkOptions("no id"), ApkOptions(version_code=0), ApkOptions(version_code=2_100_000_001)):
        with pytest.raises(UsageError):
            assemble.assemble(bundle, place, options)
    pageless = Bundle(bundle.folder, without_page(bundle), bundle.manifest_sha256)
    with pytest.raises(UsageError, match="no page"):
        assemble.assemble(pageless, place)
    assert list(tmp_path.iterdir()) == []


def without_page(bundle: Bundle) -> Manifest:
    files = tuple(entry for entry in bundle.manifest.files if entry.path != "index.html")
    return replace(bundle.manifest, files=files)


def test_a_signature_that_was_broken_is_noticed(apk: Path, tmp_path: Path) -> None:
    """The twin of the verification."""
    data = bytearray(apk.read_bytes())
    data[data.index(b"assets/bundle/") + 60] ^= 1
    (tmp_path / "broken.apk").write_bytes(data)
    with pytest.raises(AssertionError, match="DOES NOT VERIFY"):
        tool("apksigner", "verify", tmp_path / "broken.apk")


def test_more_than_an_apk_may_hold_is_refused_before_it_is_written(tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as stream:
        stream.truncate(1 << 31)
    with pytest.raises(LimitError, match="an APK may have"):
        archive.write(tmp_path / "a.zip", {"a": huge})
    assert not (tmp_path / "a.zip").exists()
