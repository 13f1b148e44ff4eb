"""Assemble an APK that shows a web bundle in Android's WebView: Debian's tools, no Android SDK, no network.

The app holds the files of the bundle as assets, and answers every request of the page from them, on an origin that no
network has. What it answers is in ``edgekit.json``, an asset, made here: each file with its type, and the headers.
"""

import json
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from edgekit import render, resources
from edgekit.apk import archive, keys
from edgekit.apk import tools as apk_tools
from edgekit.apk.keys import Keystore, SigningKey
from edgekit.apk.tools import ToolError, Tools
from edgekit.bundle import android_names as names
from edgekit.bundle.open import Bundle
from edgekit.errors import UsageError
from edgekit.files import check_space, disk_errors, write_atomic
from edgekit.progress import Progress, silent
from edgekit.serve import app as serve_app
from edgekit.serve import assets

# The host that Google keeps for pages that come from an app's assets: nothing on the network answers there.
HOST = "appassets.androidplatform.net"
INDEX = "edgekit.json"
FOLDER = "bundle"
ACTIVITY = "edgekit.webview.PageActivity"

# Android 7: the first that checks the second scheme of signatures, so that the first, which is weaker and changes the
# archive, is not needed. WebView itself is updated on its own; versions since 91 have the SIMD that the runtime needs.
MIN_SDK = 24
# Android 16, which stores ask of new apps.
TARGET_SDK = 36
_VERSION_CODES = range(1, 2_100_000_001)


@dataclass(frozen=True)
class ApkOptions:
    """What an app is called and signed with. ``application_id`` None: made from the bundle's title.

    ``keystore`` None: a debug key; such an app can be debugged, which is how parity reaches its page.
    """

    application_id: str | None = None
    version_code: int = 1
    version_name: str = "1.0"
    keystore: Keystore | None = None


@dataclass(frozen=True)
class Apk:
    """What was made."""

    path: Path
    application_id: str
    debug: bool
    bytes: int


def origin() -> str:
    """Return the origin at which the page finds itself."""
    return f"https://{HOST}"


def index(bundle: Bundle) -> dict[str, Any]:
    """Return what ``edgekit.json`` holds: the host, the headers of every answer, and the type of each file by path."""
    files = {}
    for path, asset in sorted(assets.of_bundle(bundle).items()):
        media, _, charset = asset.content_type.partition("; charset=")
        files[path] = {"type": media, "charset": charset} if charset else {"type": media}
    return {"host": HOST, "headers": {**serve_app.headers(), "Cache-Control": "no-cache"}, "files": files}


def assemble(
    bundle: Bundle, destination: Path, options: ApkOptions = ApkOptions(), *, progress: Progress = silent
) -> Apk:
    """Write an APK of ``bundle`` to ``destination``, whole or not at all; the same inputs and key give the same bytes.

    Raises UsageError for a bundle that has no page, names that Android refuses, and keystores that do not open;
    MissingToolError without the tools; LimitError for files that are too large for an APK, and for a full disk.
    """
    if "index.html" not in {entry.path for entry in bundle.manifest.files}:
        raise UsageError(f"{bundle.folder} has no page to show.", hint="Build it for a target of kind 'web'.")
    if options.version_code not in _VERSION_CODES:
        raise UsageError(f"An app's version code is a number from 1 to {_VERSION_CODES[-1]}.")
    tools = apk_tools.find()
    key = keys.signing_key(tools, options.keystore)
    application_id = _application_id(bundle, options)
    progress("Assembling the APK")
    with disk_errors(destination), tempfile.TemporaryDirectory(prefix="edgekit-apk-") as name:
        folder = Path(name)
        manifest = _manifest(bundle, application_id, options, debuggable=key.debug)
        files: dict[str, Path | bytes] = {**_compiled(tools, folder, manifest), **_assets(bundle)}
        archive.write(folder / "plain.apk", files)
        try:
            apk_tools.run(tools, "zipalign", "-f", "-p", "4", folder / "plain.apk", folder / "aligned.apk")
            signed = _signed(tools, key, folder)
        except ToolError as error:
            check_space(destination, error.said, folder)
            raise
        write_atomic(destination, signed)
    return Apk(destination, application_id, key.debug, len(signed))


def _application_id(bundle: Bundle, options: ApkOptions) -> str:
    if options.application_id is None:
        return names.application_id(bundle.manifest.title)
    return names.checked_application_id(options.application_id)


def _manifest(bundle: Bundle, application_id: str, options: ApkOptions, *, debuggable: bool) -> str:
    return render.render(
        resources.root("templates") / "apk",
        "AndroidManifest.xml.j2",
        {
            "application_id": application_id,
            "version_code": options.version_code,
            "version_name": names.label(options.version_name),
            "min_sdk": MIN_SDK,
            "target_sdk": TARGET_SDK,
            "label": names.label(bundle.manifest.title),
            "debuggable": debuggable,
        },
    )


def _compiled(tools: Tools, folder: Path, manifest: str) -> dict[str, bytes]:
    """Return the parts of an APK that Android does not read as text: manifest, resources, code."""
    template = resources.root("templates") / "apk"
    (folder / "AndroidManifest.xml").write_text(manifest, encoding="utf-8")
    apk_tools.run(tools, "aapt2", "compile", "--dir", template / "res", "-o", folder / "res.zip")
    apk_tools.run(
        tools, "aapt2", "link", "-I", tools.framework, "--manifest", folder / "AndroidManifest.xml",
        "-o", folder / "linked.apk", folder / "res.zip",
    )  # fmt: skip
    with zipfile.ZipFile(folder / "linked.apk") as linked:
        parts = {name: linked.read(name) for name in linked.namelist()}
    return {**parts, "classes.dex": _code(tools.programs["smali"], template / "smali")}


@cache
def _code(smali: str, source: Path) -> bytes:
    """Assemble the app's code, which is the same in every app."""
    with tempfile.TemporaryDirectory(prefix="edgekit-apk-") as name:
        made = Path(name) / "classes.dex"
        # One job: several write the parts of the file in the order in which they happen to end.
        apk_tools.run_program(smali, "assemble", "-j", "1", "-a", str(MIN_SDK), "-o", made, source)
        return made.read_bytes()


def _assets(bundle: Bundle) -> dict[str, Path | bytes]:
    """Return the assets. The bundle's precompressed copies stay out: the archive compresses by itself."""
    said = json.dumps(index(bundle), ensure_ascii=False, indent=1).encode()
    files: dict[str, Path | bytes] = {f"assets/{INDEX}": said}
    for path, asset in assets.of_bundle(bundle).items():
        files[f"assets/{FOLDER}/{path}"] = asset.identity.path
    return files


def _signed(tools: Tools, key: SigningKey, folder: Path) -> bytes:
    alias = ["--ks-key-alias", key.alias] if key.alias is not None else []
    apk_tools.run(
        tools, "apksigner", "sign", "--ks", key.path, *alias, "--ks-pass", f"env:{keys.PASSWORD_VARIABLE}",
        "--v1-signing-enabled", "false", "--v2-signing-enabled", "true", "--v3-signing-enabled", "true",
        "--v4-signing-enabled", "false", "--out", folder / "signed.apk", folder / "aligned.apk",
        environment=key.environment,
    )  # fmt: skip
    return (folder / "signed.apk").read_bytes()
