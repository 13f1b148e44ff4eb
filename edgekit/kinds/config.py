"""What every kind of target is built from, and what building it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edgekit.bundle.runtime_files import NetChoice
from edgekit.facts.survey import Facts
from edgekit.golden.make import CaseOptions
from edgekit.model.io import LoadedModel
from edgekit.records.cases import CaseSet
from edgekit.records.manifest import Manifest
from edgekit.records.settings import DEFAULT, SessionSettings
from edgekit.runtime_trim import RuntimeSize
from edgekit.trim.plan import Plan


@dataclass(frozen=True)
class LinuxOptions:
    """What is asked of a build for Linux. ``deb``: write a Debian package beside the bundle, too, of this version."""

    deb: bool = False
    deb_version: str = "1"


@dataclass(frozen=True)
class AndroidOptions:
    """What is asked of a build for Android.

    ``apk``: write an app beside the bundle: one that shows a page in a WebView, for which no Android SDK is needed.
    ``native``: have Gradle and the Android SDK build the app of the project instead. ``application_id``: of the app;
    None: made from the title. ``keystore``: signs the app, with the password in ``password_file`` (None: in the
    environment) and the key ``alias`` (None: the only one); without one a debug key does.
    """

    apk: bool = False
    native: bool = False
    application_id: str | None = None
    keystore: Path | None = None
    password_file: Path | None = None
    alias: str | None = None


@dataclass(frozen=True)
class BuildConfig:
    """What ``build`` needs to know.

    ``runtime``: an onnxruntime-web dist folder instead of the pinned one. ``title``: what the page shows; default: the
    model file's name without its ending. ``force``: replace a bundle that is there. ``trim``: ship a trimmed model
    where that is proven. ``trim_runtime``: ship a runtime cut to what the model needs, where that is proven; ``net``:
    which stock runtime then serves a miss. ``profiles``: run records of devices that missed functions, which are kept.
    ``browser``: the Chromium in which the model is recorded; default: one that is found. ``strength``: measure how many
    small faults of the model its cases would catch, and look for cases that catch more. ``session``: how the page
    creates sessions, of the variants that have such a setting. ``linux``, ``android``: what is asked of one kind alone.
    """

    model: Path
    target: str
    output: Path
    cases: CaseOptions = field(default_factory=CaseOptions)
    runtime: Path | None = None
    title: str | None = None
    force: bool = False
    targets_dir: Path | None = None
    trim: bool = True
    trim_runtime: bool = True
    net: NetChoice = "cpu"
    profiles: tuple[Path, ...] = ()
    browser: Path | None = None
    strength: bool = True
    session: SessionSettings = DEFAULT
    linux: LinuxOptions = LinuxOptions()
    android: AndroidOptions = AndroidOptions()


@dataclass(frozen=True, eq=False)
class Parts:
    """What a bundle of any kind is made of: the model that is shipped, what is known of it, its golden cases.

    ``plan``: how the model was trimmed; None where it is the one that came. ``documents``: more files, by path.
    """

    model: LoadedModel
    facts: Facts
    cases: CaseSet
    title: str
    plan: Plan | None = None
    documents: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class SizeRow:
    """One line of the table of sizes: "model", "runtime" or "code", its bytes as they are and compressed for the way.

    ``official_bytes``: what the published package of the same thing has, in the form in which it is fetched.
    """

    name: str
    raw_bytes: int
    packed_bytes: int | None = None
    official_bytes: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Built:
    """What a kind's writer made. ``runtimes``: how each variant's runtime was cut (web). ``sizes``: the table of sizes.

    ``beside``: files that were written beside the folder. ``warnings``: what to be warned of, in words.
    """

    manifest: Manifest
    runtimes: tuple[RuntimeSize, ...] = ()
    sizes: tuple[SizeRow, ...] = ()
    beside: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()


# Writes the bundle to ``config.output``, given its parts and a folder for what is in the making, on the same disk.
Write = Callable[[Parts, Path], Built]
