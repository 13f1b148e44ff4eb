"""Have Gradle and the Android SDK build the app of a project, where they are installed."""

import os
import shutil
import subprocess
from pathlib import Path

from edgekit.apk import tools
from edgekit.bundle.android import OUTPUTS, PROJECT, Apks
from edgekit.errors import EdgekitError, MissingToolError, UsageError
from edgekit.files import LOCK, check_space
from edgekit.progress import Progress, silent

_SECONDS = 1800
_TASKS = ("assembleDebug", "assembleDebugAndroidTest")
_LINES = 15
_HINT = "Install Android Studio, or the SDK's command-line tools and Gradle. Without them, --apk alone shows the page."


def require() -> tuple[str, Path]:
    """Return Gradle's program and the SDK's folder. Raises MissingToolError when one is not there."""
    for variable in ("ANDROID_HOME", "ANDROID_SDK_ROOT"):
        named = os.environ.get(variable)
        if named and (Path(named) / "platforms").is_dir():
            break
    else:
        raise MissingToolError("There is no Android SDK: ANDROID_HOME names no folder of one.", hint=_HINT)
    program = shutil.which("gradle")
    if program is None:
        raise MissingToolError("Gradle is not there.", hint=_HINT)
    return program, Path(named)


def build(bundle: Path, work: Path, *, progress: Progress = silent) -> Apks:
    """Build the project of the bundle in ``bundle``; return where, inside ``work``, the app and its test lie.

    A copy in ``work`` is built: what Gradle leaves would be files too many in the bundle. Raises MissingToolError
    without Gradle or SDK, UsageError with Gradle's last words when it fails, LimitError for a full disk.
    """
    program, sdk = require()
    copy = work / "gradle"
    shutil.copytree(bundle, copy, ignore=shutil.ignore_patterns(LOCK))
    project = copy / PROJECT
    progress("Gradle builds the app (the first time it fetches what it needs)")
    command = [program, "--no-daemon", "--console=plain", *_TASKS]
    try:
        done = tools.capture(command, {**os.environ, "ANDROID_HOME": str(sdk)}, seconds=_SECONDS, folder=project)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingToolError(f"Gradle could not build the app: {error}", hint=_HINT) from error
    if done.returncode != 0:
        check_space(bundle, done.stdout + done.stderr, work)
        words = "\n".join(f"{done.stdout}\n{done.stderr}".strip().splitlines()[-_LINES:])
        raise UsageError(
            f"Gradle could not build the app (exit {done.returncode}):\n{words}",
            hint=f"Build it without --apk; then try, in the bundle's folder '{PROJECT}': gradle {_TASKS[0]}",
        )
    for made in (OUTPUTS.app, OUTPUTS.test):
        if not (project / made).is_file():
            raise EdgekitError(f"Gradle ended well and left no {made}.")
    return Apks(project / OUTPUTS.app, project / OUTPUTS.test)
