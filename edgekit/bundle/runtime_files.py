"""The runtime in a bundle: what a page loads first, and the stock one that serves where a cut one misses something."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from edgekit.bundle.page import Net, Trimmed
from edgekit.errors import UsageError
from edgekit.runtime import pins
from edgekit.runtime.cut import MISS_ADDRESS
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant

NetChoice = Literal["cpu", "same", "none"]
NETS: tuple[NetChoice, ...] = get_args(NetChoice)
_FOLDER = "runtime"
_STOCK = "runtime/stock"


@dataclass(frozen=True)
class CutRuntimes:
    """What of the runtime was cut. ``wasm``: by variant id. ``plan``: what was cut and why, as JSON.

    ``refused``: the variants whose build refuses the model, stock or cut. The page learns that from the cut one and
    goes on to the next variant, so these need no net.

    ``net``: which stock runtime the bundle carries for a miss: the one for the CPU for every variant, that of each
    variant, or none.
    """

    wasm: Mapping[str, bytes] = field(default_factory=dict)
    net: NetChoice = "cpu"
    plan: Mapping[str, Any] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()


class Writer(Protocol):
    """What writes the files of a bundle."""

    def add_bytes(self, path: str, data: bytes) -> None: ...

    def add_file(self, path: str, source: Path, sha256: str | None = None) -> None: ...


@dataclass(frozen=True)
class RuntimeFiles:
    """What the page needs to know of the runtime's files: ``trimmed`` by variant id."""

    trimmed: Mapping[str, Trimmed]
    nets: tuple[Net, ...]


def add(writer: Writer, runtime: RuntimeDist, variants: Sequence[Variant], cut: CutRuntimes) -> RuntimeFiles:
    """Add the runtime's files: of each variant its JavaScript and its wasm, cut or stock, and the nets.

    Raises UsageError when a file of the runtime changed meanwhile, or it lacks the files of a net.
    """
    netted = [variant for variant in variants if variant.id in cut.wasm.keys() - cut.refused]
    nets = {variant.id: _net_of(variant, cut.net) for variant in netted}
    used = {net.id: net for net in nets.values() if net is not None}
    runtime.require(used.values())
    scripts = sorted({name for variant in (*variants, *used.values()) for name in (variant.api, variant.mjs)})
    for name in scripts:
        _add_stock(writer, runtime, f"{_FOLDER}/{name}", name)
    for variant in variants:
        if variant.id in cut.wasm:
            writer.add_bytes(f"{_FOLDER}/{variant.wasm}", cut.wasm[variant.id])
        else:
            _add_stock(writer, runtime, f"{_FOLDER}/{variant.wasm}", variant.wasm)
    for net in used.values():
        _add_stock(writer, runtime, f"{_STOCK}/{net.wasm}", net.wasm)
    writer.add_bytes(f"{_FOLDER}/LICENSE.txt", pins.load().license_text.encode())
    return RuntimeFiles(
        {
            variant.id: Trimmed(f"{_FOLDER}/{variant.wasm}", MISS_ADDRESS, None if net is None else net.id)
            for variant in variants
            if variant.id in nets
            for net in (nets[variant.id],)
        },
        tuple(
            Net(
                net.id,
                net.execution_provider,
                f"{_FOLDER}/{net.api}",
                f"{_FOLDER}/{net.mjs}",
                f"{_STOCK}/{net.wasm}",
            )
            for net in used.values()
        ),
    )


def _net_of(variant: Variant, choice: NetChoice) -> Variant | None:
    """Return the variant whose stock build serves the misses of ``variant``."""
    if choice == "none":
        return None
    # What needs nothing of the browser runs in every one.
    return variant if choice == "same" else next(one for one in pins.load().variants if not one.needs)


def _add_stock(writer: Writer, runtime: RuntimeDist, path: str, name: str) -> None:
    source = runtime.folder / name
    try:
        writer.add_file(path, source, runtime.files[name])
    except ValueError as error:
        raise UsageError(f"{source} changed while the bundle was built.", hint="Run the command again.") from error
