"""The pinned onnxruntime-web: its version, its variants, and the hash of every file. Data: web/runtime.json."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from edgekit import resources
from edgekit.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class Variant:
    """One build of the runtime: what it runs on, what the browser must have, and the names of its files in ``dist``.

    ``api`` is the JavaScript that a page calls, ``mjs`` the glue that loads ``wasm``; all three must be of one build.
    """

    id: str
    execution_provider: str
    needs: tuple[str, ...]
    api: str
    mjs: str
    wasm: str

    @property
    def files(self) -> tuple[str, str, str]:
        return self.api, self.mjs, self.wasm


@dataclass(frozen=True)
class AdapterName:
    """A WebGPU adapter as it calls itself (GPUAdapterInfo): the runtime has code of its own for some."""

    vendor: str
    architecture: str


@dataclass(frozen=True)
class PinnedFile:
    """What a file of the pinned build must be."""

    sha256: str
    bytes: int


@dataclass(frozen=True)
class Optimizer:
    """The program that shrinks a trimmed runtime further: a file of an npm package that node runs.

    ``leaves``: the variants that it is not used for. Chromium's tab (156) crashes on what Binaryen 132 writes of the
    asyncify build, even where it changes nothing. Of the jspi build it makes nothing smaller (1.31 MB compressed in
    place of 1.25), and V8 takes a second or two longer to create the first session with it.
    """

    package: str
    version: str
    path: str
    leaves: tuple[str, ...]
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Pins:
    """``web/runtime.json``. ``license_text`` travels with every copy of the runtime's files.

    ``adapters``: one of each kind that the runtime knows by name, by what its WebGPU builds hold as texts.
    """

    package: str
    version: str
    license_text: str
    variants: tuple[Variant, ...]
    adapters: tuple[AdapterName, ...]
    files: Mapping[str, PinnedFile]
    optimizer: Optimizer

    def chosen(self, ids: Sequence[str], what: str) -> tuple[Variant, ...]:
        """Return the variants called ``ids``, in that order. Raises UsageError that names ``what`` for another id."""
        by_id = {variant.id: variant for variant in self.variants}
        for variant_id in ids:
            if variant_id not in by_id:
                raise UsageError(
                    f"{what}: {self.package} has no variant '{variant_id}'.{did_you_mean(variant_id, by_id)}",
                    hint=f"Variants: {', '.join(by_id)}.",
                )
        return tuple(by_id[variant_id] for variant_id in ids)


def path() -> Path:
    """Return where ``runtime.json`` lies."""
    return resources.root("web") / "runtime.json"


@cache
def load() -> Pins:
    """Read the pins."""
    document = json.loads(path().read_text(encoding="utf-8"))
    return Pins(
        package=document["package"],
        version=document["version"],
        license_text=document["license_text"],
        variants=tuple(Variant(**{**variant, "needs": tuple(variant["needs"])}) for variant in document["variants"]),
        adapters=tuple(AdapterName(**adapter) for adapter in document["adapters"]),
        files={name: PinnedFile(**file) for name, file in document["files"].items()},
        optimizer=Optimizer(**{**document["optimizer"], "leaves": tuple(document["optimizer"]["leaves"])}),
    )
