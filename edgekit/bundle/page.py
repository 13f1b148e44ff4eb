"""The page's configuration: all that its scripts know of the bundle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from edgekit.bundle.open import CASES, TENSORS
from edgekit.facts.survey import Argument, Facts
from edgekit.golden.images import ImageOptions
from edgekit.records import manifest as manifests
from edgekit.records import settings
from edgekit.records.manifest import FileEntry
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import NUMPY_DTYPES
from edgekit.records.validate import validated
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant
from edgekit.targets.load import Target

FORMAT = 1


@dataclass(frozen=True)
class Trimmed:
    """The wasm of a variant has stubs in place of some functions. ``wasm``: its path in the bundle.

    ``miss_address``: where in memory a stub stores, as a u32, the number of its function's group before it traps.
    ``net``: the id of the net that then takes over; None: a miss is an error.
    """

    wasm: str
    miss_address: int
    net: str | None


@dataclass(frozen=True)
class Net:
    """A stock runtime that the page fetches only after a miss; ``api``, ``mjs``, ``wasm`` are paths in the bundle."""

    id: str
    execution_provider: str
    api: str
    mjs: str
    wasm: str


def url(entry: FileEntry) -> str:
    """Return the URL of a file, relative to the page. Its version makes it another URL when the bytes change."""
    return f"{quote(entry.path)}?v={entry.sha256[:16]}"


def config(
    files: Mapping[str, FileEntry],
    *,
    title: str,
    target: Target,
    facts: Facts,
    runtime: RuntimeDist,
    variants: Sequence[Variant],
    model_path: str,
    external_data: Sequence[tuple[str, str]],
    image: ImageOptions | None = None,
    trimmed: Mapping[str, Trimmed] = MappingProxyType({}),
    nets: Sequence[Net] = (),
    sessions: Mapping[str, SessionSettings] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the page's configuration, checked against its schema.

    ``files``: what is in the bundle, by path. ``external_data``: pairs of the location that the model records and the
    path in the bundle. ``image``: how the golden cases' pictures became inputs; the page treats a visitor's the same.
    ``trimmed``: by variant id, those whose runtime was trimmed; each names one of ``nets`` or none.
    ``sessions``: by variant id, how its session is created where that is not left to onnxruntime.
    """
    model = files[model_path]
    document = {
        "format": FORMAT,
        # A title from the command line need not be UTF-8; what is not could not be written.
        "title": title.encode(errors="replace").decode(),
        "target": target.id,
        "model": {
            "url": url(model),
            "sha256": model.sha256,
            "bytes": model.bytes,
            "external_data": [
                {"path": location, "url": url(files[path]), "bytes": files[path].bytes}
                for location, path in external_data
            ],
            "inputs": [_argument(argument) for argument in facts.inputs],
            "outputs": [_argument(argument) for argument in facts.outputs],
        },
        "runtime": {"package": runtime.package, "version": runtime.version},
        "variants": [
            _variant(files, variant, trimmed.get(variant.id), sessions.get(variant.id)) for variant in variants
        ],
        "nets": [_net(files, net) for net in nets],
        "threads": target.runtime.threads,
        "image": None if image is None else _image(image),
        "cases_url": url(files[CASES]),
        "tensors_url": url(files[TENSORS]),
        # The manifest lists the page, so the page cannot hold the manifest's hash.
        "manifest_url": manifests.NAME,
        "records_url": "records",
    }
    return validated(document, "page-config", "The page's configuration")


def _argument(argument: Argument) -> dict[str, Any]:
    readable = argument.dtype == "string" or argument.dtype in NUMPY_DTYPES
    return {
        "name": argument.name,
        "dtype": argument.dtype or argument.type,
        "shape": None if argument.shape is None else list(argument.shape),
        "readable": readable,
    }


def _image(options: ImageOptions) -> dict[str, Any]:
    return {
        "size": None if options.size is None else list(options.size),
        "mean": list(options.mean),
        "std": list(options.std),
        "scale": options.scale,
        "layout": options.layout,
    }


def _variant(
    files: Mapping[str, FileEntry], variant: Variant, trimmed: Trimmed | None, session: SessionSettings | None
) -> dict[str, Any]:
    api, mjs, wasm = (f"runtime/{name}" for name in variant.files)
    return {
        "id": variant.id,
        "execution_provider": variant.execution_provider,
        "needs": list(variant.needs),
        **_runtime(files, api, mjs, wasm if trimmed is None else trimmed.wasm),
        "trimmed": None if trimmed is None else {"miss_address": trimmed.miss_address, "net": trimmed.net},
        **({} if session is None else {"session": settings.to_json(session)}),
    }


def _net(files: Mapping[str, FileEntry], net: Net) -> dict[str, Any]:
    return {
        "id": net.id,
        "execution_provider": net.execution_provider,
        **_runtime(files, net.api, net.mjs, net.wasm),
    }


def _runtime(files: Mapping[str, FileEntry], api: str, mjs: str, wasm: str) -> dict[str, Any]:
    return {
        "api_url": url(files[api]),
        "mjs_url": url(files[mjs]),
        "wasm_url": url(files[wasm]),
        "wasm_sha256": files[wasm].sha256,
        "wasm_bytes": files[wasm].bytes,
    }
