"""Compile the plain Java core of Android projects for a desktop's JVM, and run it."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgekit import resources
from edgekit.targets.options import ANDROID

CORE = resources.root("templates") / ANDROID / "core" / "src" / "main" / "java" / "edgekit" / "core"
DRIVE = Path(__file__).parent / "android_core" / "CoreDrive.java"
# The one class that needs onnxruntime's, which a test of its own compiles it against.
NEEDS_ONNXRUNTIME = CORE / "OrtModel.java"


def compile_java(sources: Sequence[Path], destination: Path, *, release: int, classes: Sequence[Path] = ()) -> None:
    """Compile with every warning an error; ``release``: the version of Java that the sources are for."""
    path = ":".join(map(str, (destination, *classes)))
    # "options" is the warning that version 8 is an old one.
    flags = ["--release", str(release), "-Xlint:all,-options", "-Werror", "-encoding", "UTF-8"]
    command = ["javac", *flags, "-d", str(destination), "-cp", path, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def compile_core(destination: Path) -> Path:
    """Compile the core, as for the oldest Android, and what drives it here."""
    compile_java(sorted(set(CORE.glob("*.java")) - {NEEDS_ONNXRUNTIME}), destination, release=8)
    compile_java([DRIVE], destination, release=17)
    return destination


def run_java(classes: Path, *arguments: str | Path) -> str:
    """Run CoreDrive, and return what it printed."""
    command = ["java", "-Xshare:auto", "-cp", str(classes), "CoreDrive", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_files(classes: Path, source: Path, destination: Path) -> dict[str, Any]:
    """Have the core read every file of a folder and write it again; return what came of each."""
    said: dict[str, Any] = json.loads(run_java(classes, "files", source, destination))
    return said
