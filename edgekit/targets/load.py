"""Device targets: one TOML file each, read into a frozen ``Target``. Nothing else in the code knows a target's name."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgekit import resources, tables
from edgekit.errors import UsageError, did_you_mean
from edgekit.records.cases import Tolerance
from edgekit.records.tensors import NUMPY_DTYPES
from edgekit.targets.kind_checks import check_android, check_linux
from edgekit.targets.options import ANDROID, KINDS, LINUX, PACKAGES, Android, Linux

# More are no wish; the runner of a Linux device takes no more.
_MOST_THREADS = 256


@dataclass(frozen=True)
class Runtime:
    """``variants`` in order of preference; ``threads`` 0: as many as the device gives, at most four."""

    package: str
    variants: tuple[str, ...]
    threads: int = 0


@dataclass(frozen=True)
class Limits:
    """What the target can take. ``file_bytes``: the largest file its host serves.

    ``memory_bytes``: what a model and its session may take; ``nodes``: more make a session slow to create. 0: no limit
    is known.
    """

    file_bytes: int
    ir_version: int
    opset: int
    memory_bytes: int = 0
    nodes: int = 0


@dataclass(frozen=True)
class Gpu:
    """What the weakest GPU that the target counts with has.

    The defaults are what every WebGPU device has, by the specification (W3C WebGPU, "Limits"): ``buffer_bytes`` is
    maxStorageBufferBindingSize, ``storage_buffers`` maxStorageBuffersPerShaderStage. ``features``: optional ones that
    the target counts with, such as "shader-f16".
    """

    buffer_bytes: int = 134217728
    storage_buffers: int = 8
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parity:
    """How parity reaches the target: the name of a module in ``edgekit/runners``."""

    runner: str


@dataclass(frozen=True)
class Target:
    """A device target, checked and complete. ``id`` is the name of its file.

    ``demo``: ``edgekit demo`` builds it. ``linux``, ``android``: what targets of that kind state beside the rest.
    """

    id: str
    title: str
    kind: str
    runtime: Runtime
    limits: Limits
    parity: Parity
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    gpu: Gpu = field(default_factory=Gpu)
    demo: bool = False
    linux: Linux = field(default_factory=Linux)
    android: Android = field(default_factory=Android)


def ids(folder: Path | None = None) -> tuple[str, ...]:
    """Return the ids of every target in ``folder`` (default: those that come with edgekit), sorted."""
    return tuple(sorted(path.stem for path in _folder(folder).glob("*.toml")))


def load(target_id: str, folder: Path | None = None) -> Target:
    """Read one target. Raises UsageError for an unknown id, an unknown or missing key, or a value of the wrong type."""
    known = ids(folder)
    if target_id not in known:
        raise UsageError(
            f"There is no target '{target_id}'.{did_you_mean(target_id, known)}",
            hint=f"Targets: {', '.join(known) or 'none'}. 'edgekit targets' describes them.",
        )
    document = _resolve(target_id, _folder(folder))
    target = tables.build(Target, {"id": target_id, **document}, f"{target_id}.toml")
    _check_kind(target, document, f"{target_id}.toml")
    _check(target, f"{target_id}.toml")
    return target


def _folder(folder: Path | None) -> Path:
    folder = folder or resources.root("device_targets")
    if not folder.is_dir():
        raise UsageError(f"The targets folder {folder} does not exist.")
    return folder


def _resolve(target_id: str, folder: Path) -> dict[str, Any]:
    """Merge a target over the one that it extends (one level: a base that extends another is an error).

    A base that is not in ``folder``, or has the id of the target itself, is one of edgekit's own.
    """
    document = tables.read(folder / f"{target_id}.toml")
    base_id = document.pop("extends", None)
    if base_id is None:
        return document
    if not isinstance(base_id, str):
        raise UsageError(f"{target_id}.toml: 'extends' must be a text in quotes, the id of another target.")
    own = resources.root("device_targets")
    beside = set(ids(folder)) - {target_id}
    known = sorted(beside if folder == own else beside | set(ids(own)))
    if base_id not in known:
        raise UsageError(
            f"{folder / f'{target_id}.toml'} extends '{base_id}', which is no target.{did_you_mean(base_id, known)}",
            hint=f"It may extend: {', '.join(known)}. Those that come with edgekit count, too.",
        )
    base = tables.read((folder if base_id in beside else own) / f"{base_id}.toml")
    if "extends" in base:
        raise UsageError(
            f"{target_id}.toml extends {base_id}.toml, which extends another: only one level is allowed.",
            hint=f"Write extends = {json.dumps(base['extends'], default=str)}, and state as well what {base_id}.toml "
            f"does ('edgekit targets show {base_id}').",
        )
    return _merge(base, document)


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both_tables = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _merge(base[key], value) if both_tables else value
    return merged


def _check_kind(target: Target, document: Mapping[str, Any], file: str) -> None:
    """Refuse a kind that nothing builds, and what a target states of a kind that it is not."""
    if target.kind not in KINDS:
        raise UsageError(
            f"{file}: 'kind' is '{target.kind}', which edgekit does not build.{did_you_mean(target.kind, KINDS)}",
            hint=f"Kinds: {', '.join(KINDS)}.",
        )
    foreign = [kind for kind in KINDS if kind in document and kind != target.kind]
    if foreign:
        raise UsageError(
            f"{file}: '{foreign[0]}' is for targets of that kind, and this one is of kind '{target.kind}'.",
            hint="Leave the table out, or change 'kind'.",
        )
    package = PACKAGES[target.kind]
    if target.runtime.package != package:
        raise UsageError(
            f"{file}: 'runtime.package' is '{target.runtime.package}': targets of kind '{target.kind}' run {package}.",
            hint=f'Write package = "{package}".',
        )
    if target.kind == LINUX:
        check_linux(target.linux, file)
    if target.kind == ANDROID:
        check_android(target.android, file)


def _check(target: Target, file: str) -> None:
    """Refuse what has the right type and still makes no sense."""
    if not target.runtime.variants:
        raise UsageError(f"{file}: 'runtime.variants' is empty.", hint="Name at least one variant of the runtime.")
    if not 0 <= target.runtime.threads <= _MOST_THREADS:
        raise UsageError(f"{file}: 'runtime.threads' must be 0 (choose on the device) to {_MOST_THREADS}.")
    for place, number in (
        *((f"limits.{key}", value) for key, value in vars(target.limits).items()),
        ("gpu.buffer_bytes", target.gpu.buffer_bytes),
        ("gpu.storage_buffers", target.gpu.storage_buffers),
    ):
        if number < 0:
            raise UsageError(f"{file}: '{place}' must be 0 or more.")
    for dtype, tolerance in target.tolerance.items():
        if dtype not in NUMPY_DTYPES:
            raise UsageError(
                f"{file}: 'tolerance.{dtype}' is for no dtype.{did_you_mean(dtype, NUMPY_DTYPES)}",
                hint=f"dtypes: {', '.join(NUMPY_DTYPES)}.",
            )
        if not (0 <= tolerance.relative < math.inf and 0 <= tolerance.absolute < math.inf):
            raise UsageError(f"{file}: 'tolerance.{dtype}' must hold finite numbers of 0 or more.")
