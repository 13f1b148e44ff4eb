"""Builds for Android: the project, what it is pinned to, an app beside it, and parity on a phone that is scripted."""

import json
import re
import stat
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import android_bundle
import jvm
import onnx
import pytest
from adb_server import Answer, Phone, running
from models_text import LINEAR, parse, write
from onnx import numpy_helper

from edgekit.apk import gradle as gradles
from edgekit.bundle.android import beside
from edgekit.bundle.android_names import application_id
from edgekit.bundle.open import open_bundle
from edgekit.cli.main import run
from edgekit.desktop import optimize
from edgekit.errors import LimitError, MissingToolError, ModelError, UsageError
from edgekit.files import sha256_file
from edgekit.kinds import android
from edgekit.kinds.config import AndroidOptions, BuildConfig
from edgekit.progress import silent
from edgekit.targets import load as targets
from edgekit.targets.options import ANDROID, WEB

TARGET = "android"
pytestmark = android_bundle.needs("apk", "tests")
ANDROID_XML = "{http://schemas.android.com/apk/res/android}"
TOOLS_XML = "{http://schemas.android.com/tools}"
# Of everything that it passes through: XML, Kotlin, Java, TOML, Markdown.
TITLE = "@string/x <b> 'q' \"d\" ${evil} \\u002a/ ]]> é"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(LINEAR, tmp_path_factory.mktemp("model"), "linear.onnx")


@pytest.fixture(scope="module")
def bundle(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "bundle"
    android_bundle.build(model, folder, TARGET, title=TITLE)
    return folder


def test_a_project_is_whole_and_pinned(bundle: Path) -> None:
    opened = open_bundle(bundle)
    assert (opened.manifest.kind, opened.manifest.runtime.package) == (ANDROID, "onnxruntime-android")
    assert opened.manifest.runtime.variants == ("xnnpack", "cpu")
    catalog = tomllib.loads((bundle / "project/gradle/libs.versions.toml").read_text(encoding="utf-8"))
    assert catalog["versions"]["onnxruntime"] == opened.manifest.runtime.version
    assert all(re.fullmatch(r"\d+(\.\d+)+", version) for version in catalog["versions"].values())
    used = {"libs." + name.replace("-", ".") for name in catalog["libraries"]}
    scripts = "".join(path.read_text(encoding="utf-8") for path in (bundle / "project").rglob("*.gradle.kts"))
    assert {found for found in re.findall(r"\((libs\.[a-z.]+)\)", scripts) if ".plugins." not in found} == used
    assert not (bundle / "project" / "versions.toml").exists()
    assert (bundle / "project" / ".gitignore").is_file()


def test_a_project_asks_for_no_network_and_keeps_the_runtimes_reports_off(bundle: Path) -> None:
    manifest = ElementTree.parse(bundle / "project/app/src/main/AndroidManifest.xml").getroot()  # noqa: S314  our own
    permissions = {
        entry.get(f"{ANDROID_XML}name"): entry.get(f"{TOOLS_XML}node") for entry in manifest.iter("uses-permission")
    }
    assert permissions and set(permissions.values()) == {"remove"}
    assert "android.permission.INTERNET" in permissions
    providers = [
        entry.get(f"{ANDROID_XML}name")
        for entry in manifest.iter("provider")
        if entry.get(f"{TOOLS_XML}node") == "remove"
    ]
    assert providers == ["ai.onnxruntime.TelemetryInitializer"]
    assert "ORT_DISABLE_TELEMETRY" in (bundle / "project/app/src/main/kotlin/edgekit/app/App.kt").read_text()


def test_a_hostile_title_stays_text(bundle: Path) -> None:
    strings = ElementTree.parse(bundle / "project/app/src/main/res/values/strings.xml").getroot()  # noqa: S314  our own
    label = next(entry.text for entry in strings.iter("string") if entry.get("name") == "app_name")
    assert label == "\\@string/x <b> \\'q\\' \\\"d\\\" ${evil} \\\\u002a/ ]]> é"
    for script in (bundle / "project").rglob("*.kt*"):
        assert "evil" not in script.read_text(encoding="utf-8").replace("x_b_q_d_evil", ""), script
    readme = (bundle / "project/README.md").read_text(encoding="utf-8")
    assert "<b>" not in readme
    assert "${" not in readme


def test_the_java_of_a_project_is_the_core_that_is_tested_and_a_wrapper_that_compiles_with_it(
    bundle: Path, core_classes: Path, tmp_path: Path
) -> None:
    core = {path.name: path.read_bytes() for path in (bundle / "project/core").rglob("core/*.java")}
    assert core == {path.name: path.read_bytes() for path in jvm.CORE.glob("*.java")}
    wrapper = sorted((bundle / "project/core").rglob("model/*.java"))
    assert len(wrapper) == 2
    jvm.compile_java(wrapper, tmp_path, release=8, classes=[core_classes])


def test_the_same_model_gives_the_same_bytes(model: Path, bundle: Path, tmp_path: Path) -> None:
    android_bundle.build(model, tmp_path / "again", TARGET, title=TITLE)
    assert (tmp_path / "again" / "manifest.json").read_bytes() == (bundle / "manifest.json").read_bytes()


def with_weights(folder: Path, name: str) -> Path:
    """A model whose weights lie in a file of their own."""
    proto = parse(LINEAR)
    for weight in proto.graph.initializer:  # only raw bytes can lie elsewhere
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight), weight.name))
    folder.mkdir()
    onnx.save(proto, folder / "m.onnx", save_as_external_data=True, location=name, size_threshold=0)
    return folder / "m.onnx"


def test_weights_beside_the_model_are_assets_that_the_app_knows(tmp_path: Path) -> None:
    model = with_weights(tmp_path / "model", "weights 1.bin")
    android_bundle.build(model, tmp_path / "bundle", TARGET)
    info = (tmp_path / "bundle/project/core/src/main/java/edgekit/model/ModelInfo.java").read_text()
    assert 'Arrays.<String>asList("weights 1.bin")' in info
    assert (tmp_path / "bundle/model/weights 1.bin").is_file()


@pytest.mark.parametrize("name", [".weights", "weights.gz", "weights~", "w.SCC", "Thumbs.db"])
def test_weights_that_androids_build_would_leave_out_are_refused(tmp_path: Path, name: str) -> None:
    model = with_weights(tmp_path / "model", name)
    with pytest.raises(ModelError, match="a name that Android's build leaves out"):
        android_bundle.build(model, tmp_path / "bundle", TARGET)
    assert not (tmp_path / "bundle").exists()


def test_what_gradle_leaves_in_a_project_is_no_change_of_the_bundle_and_other_files_are(bundle: Path) -> None:
    work = [bundle / "project" / name for name in ("app/build/x.class", ".gradle/y", "local.properties", ".idea/z.xml")]
    for path in work:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    open_bundle(bundle)
    stranger = bundle / "build"
    stranger.write_text("x")
    with pytest.raises(Exception, match="added: build"):
        open_bundle(bundle)
    for path in (*work, stranger):
        path.unlink()


def test_a_target_of_ones_own_touches_no_code(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file in a folder: a phone with another processor and other execution providers, and its own tolerance."""
    (tmp_path / "old-phone.toml").write_text(
        'extends = "android"\ntitle = "An old phone"\n[runtime]\nvariants = ["nnapi", "cpu"]\nthreads = 2\n'
        '[tolerance]\nfloat32 = { relative = 1e-2, absolute = 1e-3 }\n[android]\nabis = ["armeabi-v7a"]\nmin_sdk = 26\n'
    )
    options = ["--target", "old-phone", "--targets-dir", str(tmp_path), "--no-strength", "--no-trim", "--json"]
    assert run(["build", str(model), "-o", str(tmp_path / "bundle"), *options]) == 0
    said = json.loads(capsys.readouterr().out)
    script = (tmp_path / "bundle/project/app/build.gradle.kts").read_text(encoding="utf-8")
    assert 'abiFilters += listOf("armeabi-v7a")' in script
    assert "minSdk = 26" in script
    info = (tmp_path / "bundle/project/core/src/main/java/edgekit/model/ModelInfo.java").read_text()
    assert 'Arrays.asList("nnapi", "cpu")' in info
    assert "THREADS = 2" in info
    assert open_bundle(tmp_path / "bundle").manifest.target == "old-phone"
    rows = {row["name"]: row for row in said["sizes"]}
    assert rows["runtime, armeabi-v7a"]["raw_bytes"] == 22_809_264
    assert rows["runtime, armeabi-v7a"]["official_bytes"] == 51_897_725
    assert rows["model"]["raw_bytes"] == model.stat().st_size
    needed = (tmp_path / "bundle" / optimize.OPERATORS).read_text(encoding="utf-8")
    assert needed.startswith("ai.onnx;13;MatMul")


def _refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str, code: int = 2) -> str:
    assert run(["build", str(model), "-o", str(tmp_path / "never"), *options]) == code
    assert not (tmp_path / "never").exists()
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[android]\nabis = ["arm64"]', "there is no ABI 'arm64'. Did you mean 'arm64-v8a'?"),
        ("[android]\nabis = []", "names no ABI"),
        ("[android]\ntarget_sdk = 99", "compiled against API level 36, so 'android.target_sdk' cannot be 99"),
        ('[android]\nabi = ["x86"]', "unknown key 'android.abi'. Did you mean 'abis'?"),
        ('[runtime]\nvariants = ["xnpack"]', "no execution provider 'xnpack'. Did you mean 'xnnpack'?"),
    ],
)
def test_a_target_that_cannot_be_is_refused_by_name(model: Path, tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "mine.toml").write_text(f'extends = "android"\n{table}\n')
    with pytest.raises(UsageError) as caught:
        android.prepare(config(model, tmp_path), targets.load("mine", tmp_path), silent)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--native",), "--native belongs to --apk"),
        (("--keystore", "k"), "--keystore signs what --apk writes"),
        (("--apk", "--native", "--keystore", "k"), "--keystore signs"),
        (("--keystore-alias", "k"), "belong to --keystore"),
        (("--net", "none"), "--net is for targets of kind"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert message in " ".join(_refused(model, tmp_path, capsys, "--target", TARGET, *options).split())


def config(model: Path, folder: Path, **options: Any) -> BuildConfig:
    return BuildConfig(model, TARGET, folder / "bundle", android=AndroidOptions(**options))


def test_what_cannot_be_made_is_refused_before_the_work(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT"):
        monkeypatch.delenv(name, raising=False)
    target = targets.load(TARGET)
    with pytest.raises(MissingToolError, match="There is no Android SDK"):
        android.prepare(config(model, tmp_path, apk=True, native=True), target, silent)
    with pytest.raises(UsageError, match="is no id of an Android application"):
        android.prepare(config(model, tmp_path, application_id="no id"), target, silent)
    with pytest.raises(UsageError, match="There is no keystore"):
        android.check(config(model, tmp_path, apk=True, keystore=tmp_path / "gone"))
    (tmp_path / "bundle.apk").write_text("mine")
    for force in (False, True):
        with pytest.raises(UsageError, match=r"bundle.apk is there, and no build of edgekit wrote it"):
            android.check(replace(config(model, tmp_path, apk=True), force=force))


def test_an_app_of_a_page_is_that_of_the_target_which_the_target_names(model: Path, tmp_path: Path) -> None:
    target = targets.load(TARGET)
    assert android.page_target(config(model, tmp_path, apk=True), target).kind == WEB
    assert android.page_target(config(model, tmp_path, apk=True, native=True), target) is target
    assert android.page_target(config(model, tmp_path), target) is target
    for page, message in (("", "names no page"), (TARGET, "which is of kind")):
        bent = replace(target, android=replace(target.android, page=page))
        with pytest.raises(UsageError, match=message):
            android.page_target(config(model, tmp_path, apk=True), bent)


GRADLE = """#!/bin/sh
set -e
[ "$*" = "--no-daemon --console=plain assembleDebug assembleDebugAndroidTest" ]
[ -f settings.gradle.kts ] && [ -f ../manifest.json ] && [ -f ../model/model.onnx ]
OUTCOME
mkdir -p app/build/outputs/apk/debug app/build/outputs/apk/androidTest/debug
printf app > app/build/outputs/apk/debug/app-debug.apk
printf test > app/build/outputs/apk/androidTest/debug/app-debug-androidTest.apk
"""


@pytest.fixture
def gradle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """In place of the Android SDK, which is not here: a program that looks at what Gradle is given."""

    def write(outcome: str = "") -> None:
        (tmp_path / "sdk" / "platforms").mkdir(parents=True, exist_ok=True)
        (tmp_path / "bin").mkdir(exist_ok=True)
        program = tmp_path / "bin" / "gradle"
        program.write_text(GRADLE.replace("OUTCOME", outcome))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("ANDROID_HOME", str(tmp_path / "sdk"))
        monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")

    return write


def test_with_the_sdk_gradle_builds_a_copy_and_the_apps_lie_beside_the_bundle(
    bundle: Path, tmp_path: Path, gradle: Callable[[str], None]
) -> None:
    gradle("")
    apks = gradles.build(bundle, tmp_path)
    assert (apks.app.read_bytes(), apks.test.read_bytes()) == (b"app", b"test")
    places = beside(tmp_path / "made")
    assert (places.app.name, places.test.name) == ("made.apk", "made-test.apk")
    open_bundle(bundle)
    assert not list(bundle.rglob("*.apk"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_the_apps_that_a_build_left_are_replaced_by_force_and_others_never(
    model: Path, bundle: Path, tmp_path: Path, gradle: Callable[[str], None], encoding: str
) -> None:
    gradle("")
    places = beside(tmp_path / "bundle")
    with zipfile.ZipFile(places.app, "w") as apk:
        apk.writestr("assets/manifest.json", "{}")
    with zipfile.ZipFile(places.test, "w") as apk:
        apk.writestr("AndroidManifest.xml", b"\3\0\10\0" + "androidx.test.runner.AndroidJUnitRunner".encode(encoding))
    asked, target = config(model, tmp_path, apk=True, native=True), targets.load(TARGET)
    with pytest.raises(UsageError, match="is there already"):
        android.prepare(asked, target, silent)
    android.prepare(replace(asked, force=True), target, silent)
    with zipfile.ZipFile(places.test, "w") as apk:
        apk.writestr("AndroidManifest.xml", b"of somebody")
    with pytest.raises(UsageError, match="no build of edgekit wrote it: it is kept"):
        android.prepare(replace(asked, force=True), target, silent)


def test_gradles_last_words_are_told(bundle: Path, tmp_path: Path, gradle: Callable[[str], None]) -> None:
    gradle("echo 'FAILURE: Build failed with an exception.'; exit 1")
    with pytest.raises(UsageError, match="FAILURE: Build failed with an exception") as caught:
        gradles.build(bundle, tmp_path)
    assert "gradle assembleDebug" in (caught.value.hint or "")


def test_a_disk_that_is_full_for_gradle_is_a_limit(bundle: Path, tmp_path: Path, gradle: Callable[[str], None]) -> None:
    gradle("echo 'java.io.IOException: No space left on device'; exit 1")
    with pytest.raises(LimitError, match="The disk is full"):
        gradles.build(bundle, tmp_path)


class NativePhone(Phone):
    """A phone whose app is the plain Java core on this machine's JVM; its model gives back what the cases say."""

    def __init__(self, serial: str, bundle: Path, classes: Path, work: Path, how: str = "echo") -> None:
        super().__init__(serial)
        self.bundle, self.classes, self.work, self.how = bundle, classes, work, how
        self.commands["am instrument"] = self._instrument

    def _instrument(self, command: str) -> Answer:
        asked = dict(re.findall(r"-e (\S+) (\S+)", command))
        package = command.split()[-1].partition(".test/")[0]
        out = self.work / "out"
        out.mkdir(exist_ok=True)
        hashes = [sha256_file(self.bundle / name) for name in ("manifest.json", "model/model.onnx")]
        cases = asked["cases"].split(",") if "cases" in asked else []
        jvm.run_java(
            self.classes, "replay", self.bundle / "cases", out, self.how, *hashes, asked["run"], "1.29.0", *cases
        )
        for name in ("record.json", "record.safetensors"):
            self.files[f"/sdcard/Android/data/{package}/files/edgekit/{name}"] = (out / name).read_bytes()
        return b"\nTime: 0.5\n\nOK (1 test)\n\n", b"", 0


@pytest.fixture
def apks(bundle: Path) -> Any:
    places = [bundle.with_name("bundle.apk"), bundle.with_name("bundle-test.apk")]
    for place in places:
        place.write_bytes(place.name.encode())
    yield places
    for place in places:
        place.unlink()


def parity(bundle: Path, phone: Phone, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    with running(phone) as server:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.port))
        return run(["parity", str(bundle), "--device", f"adb://{phone.serial}", "--json", *options])


def test_an_apps_test_is_installed_run_and_its_record_judged(
    bundle: Path, apks: list[Path], core_classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    phone = NativePhone("R58N", bundle, core_classes, tmp_path)
    # The drive's CPU stands for the target's XNNPACK; and its model has an output more, which is no tensor.
    code = parity(bundle, phone, monkeypatch, "--allow-fallback")
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict["compared"] == verdict["expected"] > 0
    assert {output["status"] for output in verdict["outputs"]} == {"match"}
    assert code == 6 and all("no tensor" in reason for reason in verdict["reasons"])
    assert phone.installed == [place.read_bytes() for place in apks]
    package = application_id(open_bundle(bundle).manifest.title)
    assert [command for command in phone.asked if command.startswith("pm uninstall")] == [
        f"pm uninstall {package}.test",
        f"pm uninstall {package}",
    ]
    instrument = next(command for command in phone.asked if command.startswith("am instrument"))
    assert re.fullmatch(rf"am instrument -w -e run \w+ -e repeats 5 {package}\.test/\S+AndroidJUnitRunner", instrument)


def test_the_twin_a_test_that_crashes_did_not_run(
    bundle: Path, apks: list[Path], core_classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    phone = NativePhone("R58N", bundle, core_classes, tmp_path)
    phone.commands["am instrument"] = (b"INSTRUMENTATION_RESULT: shortMsg=Process crashed.\n", b"", 0)
    assert parity(bundle, phone, monkeypatch) == 6
    assert "Process crashed" in capsys.readouterr().out
    # And one that leaves no record behind, or that of another run.
    phone.commands["am instrument"] = (b"\nOK (1 test)\n", b"", 0)
    assert parity(bundle, phone, monkeypatch) == 6
    assert "No such file" in capsys.readouterr().out


def test_an_app_that_is_not_built_is_missing_and_the_line_that_builds_it_is_named(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parity(bundle, Phone("R58N"), monkeypatch) == 4
    err = capsys.readouterr().err
    assert "is not built yet" in err
    assert "assembleDebugAndroidTest" in err
    assert parity(bundle, Phone("R58N/chrome"), monkeypatch) == 2
    assert "Leave out '/chrome'" in capsys.readouterr().err


def test_every_target_of_the_issue_is_there() -> None:
    assert {
        "webgpu", "wasm", "webgpu-ios", "wasm-ios", "wasm-lite", "webgpu-android-chrome", "android", "android-webview",
    } <= set(targets.ids())  # fmt: skip
