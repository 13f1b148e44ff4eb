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


@dataclass(frozen=True, eq=False)
class Provider:
    """An execution provider of a target, in the order in which the target tries them.

    ``variants``: the builds of the runtime that have it. ``measured``: what the first of them that was measured does;
    None: nothing was. ``fallbacks``: the providers that are tried when this one refuses the model.
    """

    id: str
    runtime: str
    variants: tuple[str, ...]
    measured: Table | None
    fallbacks: tuple[str, ...]

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
        found = tuple(t for t in tables.available() if t[0] == target.runtime.package)
        measured = tables.load(*found[-1]) if found else None
        return (Provider(_CPU, target.runtime.package, target.runtime.variants, measured, ()),)
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


def _measured(package: str, version: str, variants: Sequence[str]) -> Table | None:
    for variant in variants:
        try:
            return tables.load(package, version, variant)
        except UsageError:
            continue
    return None
