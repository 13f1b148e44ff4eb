"""Which execution providers a target's runtime has, and what was measured of each of its builds."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgekit.check.finding import Severity
from edgekit.conformance import table as tables
from edgekit.conformance.table import Table
from edgekit.errors import UsageError
from edgekit.runtime import pins
from edgekit.targets.load import Target

GPU = "webgpu"
_CPU = "cpu"
_DESKTOP = "onnxruntime"  # the package that the desktop runs


@dataclass(frozen=True, eq=False)
class Provider:
    """An execution provider of a target, in the order in which the target tries them.

    ``variants``: the builds of the runtime that have it. ``measured``: what the first of them that was measured does;
    None: nothing was. ``fallbacks``: the providers that are tried when this one refuses the model. ``stand_in``: the
    runtime that was measured in its place, because its kernels have the same sources; "": it was measured itself.
    """

    id: str
    runtime: str
    variants: tuple[str, ...]
    measured: Table | None
    fallbacks: tuple[str, ...]
    stand_in: str = ""

    @property
    def source(self) -> str:
        """Whose answers the table holds, to be put behind "measured"; "": this very runtime's."""
        return f" of {self.stand_in} on the desktop, whose CPU kernels have the same sources" if self.stand_in else ""

    @property
    def gpu(self) -> bool:
        """Whether it is a GPU, with the limits that the target states for one."""
        return self.id == GPU

    @property
    def refusal(self) -> Severity:
        """How bad it is when this provider refuses the model: the target may have another."""
        return "warning" if self.fallbacks else "error"

    @property
    def then(self) -> str:
        """What happens after a refusal, in words."""
        return f" The page then falls back to {self.fallbacks[0]}." if self.fallbacks else ""


def of(target: Target) -> tuple[Provider, ...]:
    """Return the providers of a target. Raises UsageError for a variant that the runtime does not have."""
    pinned = pins.load()
    if target.runtime.package != pinned.package:
        return (_native(target.runtime.package, target.runtime.variants),)
    chosen = pinned.chosen(target.runtime.variants, f"{target.id}.toml")
    ids = list(dict.fromkeys(variant.execution_provider for variant in chosen))
    return tuple(
        Provider(
            id=provider,
            runtime=f"{pinned.package} {pinned.version}",
            variants=(names := tuple(v.id for v in chosen if v.execution_provider == provider)),
            measured=_measured(pinned.package, pinned.version, names),
            fallbacks=tuple(ids[place + 1 :]),
        )
        for place, provider in enumerate(ids)
    )


def _native(package: str, variants: tuple[str, ...]) -> Provider:
    """Return the CPU of a runtime that is no page's. Packages for other systems are built of the desktop's sources."""
    for measured in (package, _DESKTOP):
        if found := [table for table in tables.available() if table[0] == measured]:
            name, version, _ = found[-1]
            stand_in = "" if measured == package else f"{name} {version}"
            return Provider(_CPU, package, variants, tables.load(*found[-1]), (), stand_in)
    return Provider(_CPU, package, variants, None, ())


def _measured(package: str, version: str, variants: Sequence[str]) -> Table | None:
    for variant in variants:
        try:
            return tables.load(package, version, variant)
        except UsageError:
            continue
    return None
