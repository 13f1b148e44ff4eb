"""Build for Android: a Gradle project around onnxruntime, or an app that shows a web bundle's page."""

import zipfile
from pathlib import Path

from edgekit.apk import assemble, gradle, keys
from edgekit.apk import tools as apk_tools
from edgekit.apk.assemble import ApkOptions
from edgekit.apk.keys import Keystore
from edgekit.bundle import android, android_project, destination
from edgekit.bundle.android_names import checked_application_id
from edgekit.bundle.android_project import Content, Versions
from edgekit.bundle.open import open_bundle
from edgekit.desktop import optimize
from edgekit.desktop.optimize import OPERATORS
from edgekit.errors import EdgekitError, UsageError, did_you_mean
from edgekit.files import Beside
from edgekit.kinds.config import BuildConfig, Built, Parts, SizeRow, Write
from edgekit.progress import Progress
from edgekit.records.manifest import Manifest
from edgekit.targets import load as targets
from edgekit.targets.load import Target
from edgekit.targets.options import ANDROID, WEB

_ASSETS = f"assets/{assemble.FOLDER}"
_NET = "stock runtime"
_GROUPS = {"model": f"{_ASSETS}/model/", "runtime": f"{_ASSETS}/runtime/", _NET: f"{_ASSETS}/runtime/stock/"}
_NOTES = {_NET: "for what the cut one lacks; --net none leaves it out", "code": "page, golden cases, the app itself"}
_PROVIDERS = ("xnnpack", "cpu", "nnapi")


def page_target(config: BuildConfig, target: Target) -> Target:
    """Return the target that is built: that of the page, where an app is asked for that shows one."""
    options = config.android
    if target.kind != ANDROID or not options.apk or options.native:
        return target
    if not target.android.page:
        raise UsageError(
            f"Target '{target.id}' names no page that an APK could show.",
            hint="Write the id of a target of kind 'web' as 'page' into its table [android], or give --native.",
        )
    # A user's own target may name one that comes with edgekit.
    own = target.android.page in targets.ids(config.targets_dir)
    page = targets.load(target.android.page, config.targets_dir if own else None)
    if page.kind != WEB:
        raise UsageError(f"Target '{target.id}' names '{page.id}' as its page, which is of kind '{page.kind}'.")
    return page


def check(config: BuildConfig) -> None:
    """Refuse, before the minutes of work, an app beside a web bundle that could not be made."""
    if not config.android.apk:
        return
    tools = apk_tools.find()
    keys.signing_key(tools, _options(config).keystore)
    _check_id(config)
    _check_place(android.beside(config.output).app, config)


def packer(config: BuildConfig, work: Path, progress: Progress) -> Beside | None:
    """Return what makes the app of a web bundle, in the folder ``work``; None where none is asked for."""
    if not config.android.apk:
        return None
    place = android.beside(config.output).app

    def make(bundle: Path) -> dict[Path, Path]:
        made = work / place.name
        assemble.assemble(open_bundle(bundle, verify=False), made, _options(config), progress=progress)
        return {place: made}

    return make


def packed(config: BuildConfig) -> tuple[tuple[Path, ...], tuple[SizeRow, ...]]:
    """Return the app beside the web bundle where one was asked for, and the table of its sizes."""
    if not config.android.apk:
        return (), ()
    place = android.beside(config.output).app
    return (place,), apk_sizes(place)


def apk_sizes(apk: Path) -> tuple[SizeRow, ...]:
    """Return what an app is made of, as it is read and as it lies in the APK."""
    with zipfile.ZipFile(apk) as archive:
        entries = archive.infolist()
    groups = {name: [e for e in entries if e.filename.startswith(start)] for name, start in _GROUPS.items()}
    groups["runtime"] = [entry for entry in groups["runtime"] if entry not in groups[_NET]]
    groups["code"] = [entry for entry in entries if all(entry not in group for group in groups.values())]
    return tuple(
        SizeRow(name, sum(e.file_size for e in group), sum(e.compress_size for e in group), note=_NOTES.get(name, ""))
        for name, group in groups.items()
        if group
    )


def _options(config: BuildConfig) -> ApkOptions:
    asked = config.android
    keystore = None if asked.keystore is None else Keystore(asked.keystore, asked.password_file, asked.alias)
    return ApkOptions(application_id=asked.application_id, keystore=keystore)


def _check_id(config: BuildConfig) -> None:
    if config.android.application_id is not None:
        checked_application_id(config.android.application_id)


def _check_place(path: Path, config: BuildConfig) -> None:
    destination.check_beside(path, force=config.force, ours=_is_app)


def _is_app(path: Path) -> bool:
    """Whether a file is an app around a bundle."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.startswith("assets/") and name.endswith("/manifest.json") for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _is_test(path: Path) -> bool:
    """Whether a file is an app that tests another: it holds no bundle, but its manifest names who runs the tests."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = archive.read("AndroidManifest.xml")
    except (OSError, KeyError, zipfile.BadZipFile):
        return False
    # Android's own form of XML holds its texts in either encoding.
    return any(android.TEST_RUNNER.encode(encoding) in manifest for encoding in ("utf-8", "utf-16-le"))


def prepare(config: BuildConfig, target: Target, progress: Progress) -> Write:
    """Return what writes the project, and the app beside it where that is asked for.

    Raises UsageError for a target with ABIs or execution providers that there are not, MissingToolError when the app is
    to be built and the Android SDK or Gradle is not there.
    """
    pinned = android_project.versions()
    _check_target(target, pinned)
    _check_id(config)
    places = android.beside(config.output)
    if config.android.apk:
        gradle.require()
        _check_place(places.app, config)
        destination.check_beside(places.test, force=config.force, ours=_is_test)

    def write(parts: Parts, folder: Path) -> Built:
        operators, warnings = _operators(parts, config, folder, progress)
        content = Content(
            model=parts.model,
            facts=parts.facts,
            cases=parts.cases,
            title=parts.title,
            application_id=config.android.application_id,
            plan=parts.plan,
            operators=operators,
            documents=parts.documents,
        )

        def beside(bundle: Path) -> dict[Path, Path]:
            made = gradle.build(bundle, folder, progress=progress)
            return {places.app: made.app, places.test: made.test}

        progress("Writing the project")
        apk = config.android.apk
        manifest = android_project.write(
            config.output, content, target, force=config.force, beside=beside if apk else None
        )
        written = (places.app, places.test) if apk else ()
        return Built(manifest, sizes=_sizes(manifest, target, pinned), beside=written, warnings=warnings)

    return write


def _check_target(target: Target, pinned: Versions) -> None:
    for provider in target.runtime.variants:
        if provider not in _PROVIDERS:
            raise UsageError(
                f"Target '{target.id}': the app knows no execution provider '{provider}'."
                f"{did_you_mean(provider, _PROVIDERS)}",
                hint=f"Execution providers: {', '.join(_PROVIDERS)}.",
            )
    for abi in target.android.abis:
        if abi not in pinned.abis:
            raise UsageError(
                f"Target '{target.id}': there is no ABI '{abi}'.{did_you_mean(abi, pinned.abis)}",
                hint=f"ABIs: {', '.join(pinned.abis)}.",
            )
    if target.android.target_sdk > pinned.compile_sdk:
        raise UsageError(
            f"Target '{target.id}': the project is compiled against API level {pinned.compile_sdk}, so "
            f"'android.target_sdk' cannot be {target.android.target_sdk}."
        )
    if not target.android.abis:
        raise UsageError(f"Target '{target.id}' names no ABI.", hint=f"ABIs: {', '.join(pinned.abis)}.")


def _operators(
    parts: Parts, config: BuildConfig, folder: Path, progress: Progress
) -> tuple[str | None, tuple[str, ...]]:
    """Return what a build of onnxruntime for this model alone needs. The model itself is shipped as it is: XNNPACK does
    not take nodes that onnxruntime fused ahead of time.
    """
    progress("Listing the operators that the optimized graph needs")
    try:
        made = optimize.optimize(parts.model, folder / "optimize", config.cases.limits)
    except EdgekitError as error:
        return None, (f"{OPERATORS} could not be made: {error.message}",)
    return made.operators, () if made.problem is None else (f"{OPERATORS} could not be made: {made.problem}",)


def _sizes(manifest: Manifest, target: Target, pinned: Versions) -> tuple[SizeRow, ...]:
    """Return the table of sizes: what lies on a device of the first ABI, and what each other adds."""
    model = sum(entry.bytes for entry in manifest.files if entry.path.startswith("model/"))
    first, *others = target.android.abis
    rows = [SizeRow("model", model, note="not compressed, so that it is mapped into memory")]
    for abi in (first, *others):
        size = pinned.abis[abi]
        note = "" if abi == first else "a device gets one ABI; an APK holds all that are named"
        rows.append(SizeRow(f"runtime, {abi}", size.raw_bytes, size.packed_bytes, pinned.aar_bytes, note))
    classes = pinned.classes
    rows.append(SizeRow("code", classes.raw_bytes, classes.packed_bytes, note="onnxruntime's classes, before R8"))
    return tuple(rows)
