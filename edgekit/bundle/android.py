"""Bundles for Android: a Gradle project of the app, its model and golden cases, and where the built app lies."""

from dataclasses import dataclass
from pathlib import Path

from edgekit.bundle.open import Bundle
from edgekit.errors import BundleError, MissingToolError

PROJECT = "project"
RECORD_FOLDER = "edgekit"
TEST_RUNNER = "androidx.test.runner.AndroidJUnitRunner"
IDENTITY = "project/edgekit.properties"


@dataclass(frozen=True)
class Apks:
    """The app, and the test that drives it."""

    app: Path
    test: Path


# Where Gradle puts what it builds, inside the project.
OUTPUTS = Apks(
    Path("app/build/outputs/apk/debug/app-debug.apk"),
    Path("app/build/outputs/apk/androidTest/debug/app-debug-androidTest.apk"),
)


def beside(folder: Path) -> Apks:
    """Return where edgekit puts the app and the test that it had Gradle build: beside the bundle's folder."""
    return Apks(folder.with_name(f"{folder.name}.apk"), folder.with_name(f"{folder.name}-test.apk"))


def find_apks(bundle: Bundle) -> Apks:
    """Return the bundle's app and test: beside the bundle, or where Gradle left them. Raises MissingToolError."""
    project = bundle.folder / PROJECT
    places = (beside(bundle.folder), Apks(project / OUTPUTS.app, project / OUTPUTS.test))
    for apks in places:
        if apks.app.is_file() and apks.test.is_file():
            return apks
    raise MissingToolError(
        f"The app of {bundle.folder} is not built yet.",
        hint=f"With the Android SDK, in {bundle.folder / PROJECT}: gradle assembleDebug assembleDebugAndroidTest",
    )


def application_id(bundle: Bundle) -> str:
    """Return the id of the bundle's app, as the bundle says it. Raises BundleError when it says none."""
    try:
        lines = (bundle.folder / IDENTITY).read_text(encoding="utf-8").splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("applicationId="))
    except (OSError, UnicodeDecodeError, StopIteration) as error:
        raise BundleError(f"{bundle.folder} does not say the id of its app, in {IDENTITY}.") from error
