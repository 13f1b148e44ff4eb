"""Read an APK as Android does, for the tests: its assets, the answers that its screen gives, what its tools say."""

import json
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ANDROID = Path(__file__).parent / "android"
JSON_CLASSES = Path("/usr/share/java/com.android.json.jar")  # Debian: libandroid-json-java


def tool(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    """Run a program that must succeed, and return what it said."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Answer:
    """What the app's screen answers to a request."""

    status: int
    headers: dict[str, str]
    body: bytes


class Answers:
    """The answers of an APK, from what it holds: the rules of AssetAnswers.smali, which a test runs beside these."""

    def __init__(self, apk: Path) -> None:
        self._archive = zipfile.ZipFile(apk)
        self.index: dict[str, Any] = json.loads(self._archive.read("assets/edgekit.json"))
        self.origin = f"https://{self.index['host']}"

    def get(self, method: str, path: str) -> Answer:
        entry = self.index["files"].get(path or "index.html") if method == "GET" else None
        if entry is None:
            return Answer(404 if method == "GET" else 405, {**self.index["headers"], "Content-Type": "text/plain"}, b"")
        media = entry["type"] + (f"; charset={entry['charset']}" if "charset" in entry else "")
        body = self._archive.read(f"assets/bundle/{path or 'index.html'}")
        return Answer(200, {**self.index["headers"], "Content-Type": media}, body)


class Screen:
    """The app's own code on this machine's JVM: its bytecode made Java's, and Android's classes made up."""

    def __init__(self, apk: Path, folder: Path) -> None:
        self._assets = folder / "assets"
        with zipfile.ZipFile(apk) as archive:
            archive.extractall(folder)
        jar, classes = folder / "app.jar", folder / "classes"
        python = {"PYTHON": "/usr/bin/python3", "PATH": "/usr/bin"}  # Debian's, which enjarify is installed for
        tool("enjarify", "-o", jar, folder / "classes.dex", environment=python)
        self._path = f"{classes}:{jar}:{JSON_CLASSES}"
        tool("javac", "-nowarn", "-d", classes, "-cp", self._path, *sorted(ANDROID.rglob("*.java")))

    def run(self, *requests: str, debuggable: bool) -> dict[str, Any]:
        """Start it, ask it ``requests`` ("METHOD URL"), and return what it did and answered."""
        said = tool("java", "-cp", self._path, "Drive", self._assets, "2" if debuggable else "0", *requests)
        result: dict[str, Any] = json.loads(said)
        return result
