"""Obtain a run record from an Android device: by the app of a bundle, by its WebView, or by Chrome on it."""

import re
import secrets
import shlex
import socket
import tempfile
import time
from pathlib import Path
from urllib.parse import unquote

from edgekit.apk import assemble
from edgekit.apk.assemble import ApkOptions
from edgekit.bundle import android_names as names
from edgekit.bundle.android import PROJECT, RECORD_FOLDER, TEST_RUNNER, Apks, application_id, find_apks
from edgekit.bundle.open import TENSORS, Bundle
from edgekit.errors import MissingToolError, ParityError, UsageError
from edgekit.progress import Progress, silent
from edgekit.records import run_record
from edgekit.records.run_record import RunRecord
from edgekit.runners import adb_client, connect, webview
from edgekit.runners.adb_client import AdbError, Server
from edgekit.runners.page import LOOPBACK, Ask
from edgekit.targets.options import ANDROID, WEB

DEVICE = "adb://SERIAL"
DEVICE_KINDS = (ANDROID, WEB)

_WAYS = ("webview", "chrome")
# Nothing: the only device.
_SERIAL = re.compile(r"([A-Za-z0-9._\[\]%][A-Za-z0-9._\-\[\]%]*(:[0-9]{1,5})?)?")
_INSTALL_SECONDS = 300.0
_START_SECONDS = 30.0
_LOOK_SECONDS = 0.3
_ROOM_BYTES = 16 << 20
_CHROME = "localabstract:chrome_devtools_remote"
_OF_PARITY = "parity"  # the end of the id of an app that parity installs: it must not replace a user's own


def run_device(bundle: Bundle, ask: Ask, address: str, *, progress: Progress = silent) -> RunRecord:
    """Run ``bundle`` on the device at ``address``: adb://SERIAL, for a page adb://SERIAL/chrome as well.

    Raises UsageError for an address that is none, MissingToolError without an adb server, a device that can be used, or
    an app to install; ParityError when the device gave no record.
    """
    serial, way = parse(address)
    server = adb_client.usual_server()
    if way and bundle.manifest.kind != WEB:
        raise UsageError(
            f"'{address}' names a browser, and the bundle is of kind '{bundle.manifest.kind}'.",
            hint=f"Leave out '/{way}': such a bundle brings its own app.",
        )
    device = adb_client.choose(server, serial)
    progress(f"Using {device.model or device.serial}")
    if bundle.manifest.kind != WEB:
        return _run_app(bundle, ask, server, device.serial, progress)
    if way == "chrome":
        return _run_chrome(bundle, ask, server, device.serial, progress)
    return _run_webview(bundle, ask, server, device.serial, progress)


def parse(address: str) -> tuple[str, str]:
    """Return (serial, way) of an address; "" for what it leaves out. Raises UsageError when it is malformed."""
    if not address:
        return "", ""
    scheme, separator, rest = address.partition("://")
    serial, _, way = rest.partition("/")
    serial = unquote(serial)
    # A serial becomes a part of requests, whose parts colons and semicolons separate; a port at its end is usual.
    fine = scheme == "adb" and separator and _SERIAL.fullmatch(serial)
    if not fine or way not in ("", *_WAYS):
        raise UsageError(
            f"'{address}' is the address of no Android device.",
            hint=f"adb://SERIAL ('adb devices' lists serials), or for a page adb://SERIAL/{_WAYS[1]}.",
        )
    return serial, way


def _run_webview(bundle: Bundle, ask: Ask, server: Server, serial: str, progress: Progress) -> RunRecord:
    package = f"{names.application_id(bundle.manifest.title)}.{_OF_PARITY}"
    with tempfile.TemporaryDirectory(prefix="edgekit-adb-") as folder:
        apk = assemble.assemble(bundle, Path(folder) / "app.apk", ApkOptions(package), progress=progress)
        _install(server, serial, apk.path, progress)
    try:
        _must(server, serial, f"am start -W -n {package}/{assemble.ACTIVITY}", "Error")
        pid = _pid(server, serial, package)
        with adb_client.forward(server, serial, f"localabstract:webview_devtools_remote_{pid}") as port:
            progress(f"The WebView on {serial} replays the golden cases")
            return webview.replay(bundle, ask, port)
    finally:
        _uninstall(server, serial, package)


def _run_chrome(bundle: Bundle, ask: Ask, server: Server, serial: str, progress: Progress) -> RunRecord:
    """Serve the page from here: the device reaches it as its own localhost, which is a secure context."""
    port = _free_port()
    with adb_client.reverse(server, serial, port), adb_client.forward(server, serial, _CHROME) as devtools:
        return connect.run_cdp(bundle, ask, f"http://{LOOPBACK}:{devtools}", port=port, progress=progress)


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def _run_app(bundle: Bundle, ask: Ask, server: Server, serial: str, progress: Progress) -> RunRecord:
    """Install the app and its instrumented test, start the test, and pull the record that it wrote."""
    if ask.soak:
        raise UsageError("An app does not take --soak.", hint="Leave it out.")
    apks: Apks = find_apks(bundle)
    # It becomes a part of commands in the device's shell, and a bundle is untrusted.
    package, run = names.checked_application_id(application_id(bundle)), secrets.token_hex(8)
    for apk in (apks.app, apks.test):
        _install(server, serial, apk, progress)
    try:
        progress(f"The app on {serial} replays the golden cases")
        command = _instrument(package, run, ask)
        done = adb_client.shell(server, serial, command, seconds=ask.timeout_seconds)
        text = done.stdout.decode(errors="replace")
        # am instrument exits with 0 whatever happens to the test.
        if done.exit_code != 0 or "\nOK (" not in text:
            raise ParityError(
                f"The test on {serial} did not end well: {done.said}",
                hint=f"Run it by hand, in {bundle.folder / PROJECT}: gradle connectedDebugAndroidTest",
            )
        place = f"/sdcard/Android/data/{package}/files/{RECORD_FOLDER}"
        limit = _ROOM_BYTES + 2 * (bundle.folder / TENSORS).stat().st_size
        document = adb_client.pull(server, serial, f"{place}/record.json", limit_bytes=limit)
        tensors = adb_client.pull(server, serial, f"{place}/record.safetensors", limit_bytes=limit)
    finally:
        for installed in (f"{package}.test", package):
            _uninstall(server, serial, installed)
    return _record(document, tensors, run)


def _instrument(package: str, run: str, ask: Ask) -> str:
    asked = {"run": run, "repeats": str(ask.repeats)}
    if ask.variant is not None:
        asked["variant"] = ask.variant
    if ask.threads is not None:
        asked["threads"] = str(ask.threads)
    if ask.cases is not None:
        asked["cases"] = ",".join(ask.cases)
    options = " ".join(f"-e {name} {shlex.quote(value)}" for name, value in asked.items())
    return f"am instrument -w {options} {package}.test/{TEST_RUNNER}"


def _install(server: Server, serial: str, apk: Path, progress: Progress) -> None:
    progress(f"Installing {apk.name} on {serial}")
    place = f"/data/local/tmp/edgekit-{secrets.token_hex(8)}.apk"
    adb_client.push(server, serial, apk, place)
    try:
        done = adb_client.shell(server, serial, f"pm install -r -t {place}", seconds=_INSTALL_SECONDS)
        if done.exit_code != 0 or b"Success" not in done.stdout:
            raise MissingToolError(f"{apk.name} could not be installed on {serial}: {done.said}", hint=_why(done.said))
    finally:
        _quietly(server, serial, f"rm -f {place}")


def _why(said: str) -> str | None:
    known = {
        "INSTALL_FAILED_UPDATE_INCOMPATIBLE": "An app of that name with another key is there: uninstall it first.",
        "INSTALL_FAILED_INSUFFICIENT_STORAGE": "Free some space on the device.",
        "INSTALL_FAILED_OLDER_SDK": "The device's Android is too old for it.",
        "INSTALL_FAILED_NO_MATCHING_ABIS": "The app has no code for the device's processor: see 'abis' in the target.",
        "INSTALL_FAILED_USER_RESTRICTED": "Allow installing over USB in the device's developer options.",
    }
    return next((hint for word, hint in known.items() if word in said), None)


def _uninstall(server: Server, serial: str, package: str) -> None:
    _quietly(server, serial, f"pm uninstall {package}")


def _quietly(server: Server, serial: str, command: str) -> None:
    """Clean up; where the device has gone there is nothing to clean, and the first error is the one to tell."""
    try:
        adb_client.shell(server, serial, command)
    except (AdbError, MissingToolError):
        return


def _must(server: Server, serial: str, command: str, failed: str) -> None:
    done = adb_client.shell(server, serial, command)
    if done.exit_code != 0 or failed in done.said:
        raise ParityError(f"'{command}' failed on {serial}: {done.said}")


def _pid(server: Server, serial: str, package: str) -> int:
    """Wait until the app runs and its WebView can be reached, and return the number of its process."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        text = adb_client.shell(server, serial, f"pidof {package}").stdout.split()
        if text and text[0].isdigit():
            sockets = adb_client.shell(server, serial, "cat /proc/net/unix").stdout.decode(errors="replace")
            if f"@webview_devtools_remote_{int(text[0])}" in sockets.split():
                return int(text[0])
        time.sleep(_LOOK_SECONDS)
    raise ParityError(
        f"The app on {serial} opened no WebView within {_START_SECONDS:g} s.",
        hint="Is the device unlocked, and 'Android System WebView' (or Chrome) enabled?",
    )


def _record(document: bytes, tensors: bytes, run: str) -> RunRecord:
    try:
        record = run_record.from_device(document, tensors)
    except (UsageError, ValueError, OverflowError, RecursionError) as error:
        said = error.message if isinstance(error, UsageError) else str(error)[:200]
        raise ParityError(f"The record of the device is malformed: {said}") from error
    if record.run != run:
        raise ParityError("The device gave the record of another run.")
    return record
