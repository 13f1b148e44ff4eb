"""What a runtime's functions are for: which of them start-up, each operator, each kernel and each text needs.

A profile belongs to one wasm file, which its sha256 names. Those of the pinned build travel with edgekit, in
``edgekit/runtime/profiles``; ``edgekit runtime profile`` measures one for another build, into the user's cache.
Functions are code indices of that file, everywhere.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import brotli

from edgekit.errors import UsageError
from edgekit.files import sha256_bytes
from edgekit.runtime import branches, cache
from edgekit.runtime.kernels import Kernels
from edgekit.wasm.edits import Branches

FORMAT = 2
PACKAGED = Path(__file__).resolve().parent / "profiles"
_SUFFIX = ".json.br"
# A miss names a group of neighbours and not one function: stubs that are equal compress to almost nothing, and
# neighbours come from one source file, so what misses one may soon miss the next.
GROUP = 256


@dataclass(frozen=True)
class OperatorFunctions:
    """The functions that a session with one operator enters, beyond start-up.

    ``dtypes``: of the schema's type variables, in their order. ``since``: the schema version.
    """

    domain: str
    op_type: str
    since: int
    dtypes: tuple[str, ...]
    functions: frozenset[int]


@dataclass(frozen=True)
class ModelFunctions:
    """The functions that a session with several nodes enters, beyond start-up: ``operators`` are (domain, op_type)."""

    operators: frozenset[tuple[str, str]]
    functions: frozenset[int]


@dataclass(frozen=True)
class TextPlace:
    """A text in the data: where, how long, and which functions read it.

    ``in_branches``: those of them that do so only in the profile's branches. ``documentation``: it describes an
    operator to people, and no code looks at what it says.
    """

    address: int
    bytes: int
    functions: frozenset[int]
    in_branches: frozenset[int]
    documentation: bool


@dataclass(frozen=True)
class Profile:
    """``start``: what every page enters before its first session, and in a session with one node that does nothing.

    ``failures``: what sessions and runs that fail enter, whatever the operator. ``threads``: what more
    threads than one enter, or may at another time. ``count``: of all functions. ``branches``: those of functions that
    every session enters which no session took; none lies in another.
    """

    package: str
    version: str
    variant: str
    wasm_sha256: str
    count: int
    start: frozenset[int]
    failures: frozenset[int]
    threads: frozenset[int]
    operators: tuple[OperatorFunctions, ...]
    models: tuple[ModelFunctions, ...]
    kernels: Kernels | None
    texts: tuple[TextPlace, ...]
    branches: Branches


def group_of(function: int) -> int:
    """Return the number that the stub of a function reports: that of its group, from 1."""
    return function // GROUP + 1


def functions_of(number: int, count: int) -> range:
    """Return the functions of the group that a stub reported, of ``count`` in all. Raises UsageError for none."""
    found = range(min((number - 1) * GROUP, count), min(number * GROUP, count))
    if number < 1 or not found:
        raise UsageError(f"No function of the runtime has the number {number}: a miss of another runtime?")
    return found


def find(wasm_sha256: str) -> Profile | None:
    """Return the profile of a wasm file: one of the package's own, else one in the user's cache; None: there is none.

    Raises UsageError for one in the cache that is damaged.
    """
    for folder in (PACKAGED, cached()):
        path = folder / file_name(wasm_sha256)
        if path.is_file():
            return from_bytes(path.read_bytes(), path)
    return None


def cached() -> Path:
    """Return the folder of the profiles that this user measured."""
    return cache.folder() / "profiles"


def file_name(wasm_sha256: str) -> str:
    """Return the name of a profile's file."""
    return f"{wasm_sha256[:32]}{_SUFFIX}"


def to_bytes(profile: Profile) -> bytes:
    """Return the profile as a file: JSON, in which functions that always go together stand once, under brotli."""
    sets = [one.functions for one in profile.operators] + [one.functions for one in profile.models]
    clusters, members = _clusters(sets)
    document = {
        "format": FORMAT,
        "package": profile.package,
        "version": profile.version,
        "variant": profile.variant,
        "wasm_sha256": profile.wasm_sha256,
        "count": profile.count,
        "start": _steps(profile.start),
        "failures": _steps(profile.failures),
        "threads": _steps(profile.threads),
        "clusters": [_steps(cluster) for cluster in clusters],
        "operators": [
            [one.domain, one.op_type, one.since, list(one.dtypes), _steps(numbers)]
            for one, numbers in zip(profile.operators, members, strict=False)
        ],
        "models": [
            [sorted(map(list, one.operators)), _steps(numbers)]
            for one, numbers in zip(profile.models, members[len(profile.operators) :], strict=True)
        ],
        "kernels": None if profile.kernels is None else _kernels_to_json(profile.kernels),
        "texts": [
            [one.address, one.bytes, _steps(one.functions), _steps(one.in_branches), one.documentation]
            for one in profile.texts
        ],
        "branches": branches.to_json(profile.branches),
    }
    data: bytes = brotli.compress(json.dumps(document, separators=(",", ":")).encode(), quality=11, lgwin=24)
    return data


def from_bytes(data: bytes, path: Path) -> Profile:
    """Read a profile. Raises UsageError when the file is damaged or of another format."""
    try:
        document = json.loads(brotli.decompress(data))
        if document["format"] != FORMAT:
            raise UsageError(
                f"{path} is a profile of format {document['format']}; this edgekit reads format {FORMAT}.",
                hint="Measure it again with 'edgekit runtime profile'.",
            )
        return _read(document)
    except (brotli.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise UsageError(
            f"{path} is not a runtime profile, or is damaged: {error}.",
            hint="Delete it, and measure it again with 'edgekit runtime profile'.",
        ) from error


def _read(document: Mapping[str, Any]) -> Profile:
    clusters = [_numbers(steps) for steps in document["clusters"]]

    def joined(steps: Sequence[int]) -> frozenset[int]:
        return frozenset(k for number in _numbers(steps) for k in clusters[number])

    kernels = document["kernels"]
    return Profile(
        document["package"],
        document["version"],
        document["variant"],
        document["wasm_sha256"],
        document["count"],
        frozenset(_numbers(document["start"])),
        frozenset(_numbers(document["failures"])),
        frozenset(_numbers(document["threads"])),
        tuple(
            OperatorFunctions(domain, op_type, since, tuple(dtypes), joined(steps))
            for domain, op_type, since, dtypes, steps in document["operators"]
        ),
        tuple(
            ModelFunctions(frozenset((domain, op_type) for domain, op_type in operators), joined(steps))
            for operators, steps in document["models"]
        ),
        None if kernels is None else _kernels_from_json(kernels),
        tuple(
            TextPlace(address, size, frozenset(_numbers(steps)), frozenset(_numbers(in_branches)), documentation)
            for address, size, steps, in_branches, documentation in document["texts"]
        ),
        branches.from_json(document["branches"]),
    )


def _kernels_to_json(kernels: Kernels) -> dict[str, Any]:
    return {"void": kernels.void, "builders": [[k, _steps(made)] for k, made in sorted(kernels.builders.items())]}


def _kernels_from_json(document: Mapping[str, Any]) -> Kernels:
    return Kernels(document["void"], {k: frozenset(_numbers(steps)) for k, steps in document["builders"]})


def _clusters(sets: Sequence[frozenset[int]]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the largest groups of functions that are in the same of the sets, and for each set those it is made of."""
    where: dict[int, list[int]] = {}
    for number, functions in enumerate(sets):
        for k in functions:
            where.setdefault(k, []).append(number)
    together: dict[tuple[int, ...], list[int]] = {}
    for k in sorted(where):
        together.setdefault(tuple(where[k]), []).append(k)
    members: list[list[int]] = [[] for _ in sets]
    for cluster, numbers in enumerate(together):
        for number in numbers:
            members[number].append(cluster)
    return list(together.values()), members


def _steps(numbers: Iterable[int]) -> list[int]:
    """Return numbers in order, each as its distance from the one before: small numbers compress well."""
    ordered = sorted(numbers)
    return [after - before for before, after in zip([0, *ordered], ordered, strict=False)]


def _numbers(steps: Iterable[int]) -> list[int]:
    # From 0 on, so that what is no number is an error.
    return list(accumulate(steps, initial=0))[1:]


def stem(profile: Profile) -> str:
    """Return what people call the build."""
    return f"{profile.package} {profile.version}, {profile.variant}"


def check_belongs(profile: Profile, wasm: bytes) -> None:
    """Raise UsageError unless the profile is of this wasm file."""
    found = sha256_bytes(wasm)
    if found != profile.wasm_sha256:
        raise UsageError(
            f"The profile of {stem(profile)} is of another build: the wasm file's sha256 is {found}, "
            f"and it was measured with {profile.wasm_sha256}.",
            hint=f"Remove {cached() / file_name(found)}, and measure one with 'edgekit runtime profile'.",
        )
