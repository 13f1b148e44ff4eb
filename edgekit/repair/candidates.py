"""What may cure a bundle, in the order in which it is tried: what changes least comes first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import onnx

from edgekit.check.providers import GPU
from edgekit.records.settings import DEFAULT, Optimization, SessionSettings
from edgekit.repair.rewrite import REWRITES
from edgekit.runtime.pins import Variant

Family = Literal["known", "layout", "optimization", "cpu-nodes", "rewrite", "variants"]
FAMILIES: tuple[Family, ...] = get_args(Family)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One thing changed. ``name`` says it in words.

    ``sessions``: how sessions are created, by variant. ``model``: in place of the bundle's. ``variants``: those that
    are left, in order of preference.
    """

    name: str
    family: Family
    sessions: Mapping[str, SessionSettings] = field(default_factory=dict)
    model: onnx.ModelProto | None = None
    variants: tuple[str, ...] | None = None


def with_settings(name: str, family: Family, settings: SessionSettings, variants: Sequence[Variant]) -> Candidate:
    """Return what creates the sessions of ``variants`` so. Only WebGPU has layouts, and nodes to leave to the CPU."""
    sessions = {}
    for variant in variants:
        gpu = variant.execution_provider == GPU
        own = settings if gpu else SessionSettings(settings.optimization)
        if own != DEFAULT:
            sessions[variant.id] = own
    return Candidate(name, family, sessions)


def listed(
    proto: onnx.ModelProto,
    failing: Sequence[Variant],
    right: Sequence[str],
    families: Sequence[Family],
    known: Sequence[SessionSettings] = (),
) -> tuple[Candidate, ...]:
    """Return the candidates that need no search, those of ``families`` alone.

    ``failing``: the variants that answer wrongly or not at all; ``right``: the ids of those that pass. ``known``:
    settings that were measured to cure what the model has.
    """
    cures = [with_settings(f"known cure: {told(one)}", "known", one, failing) for one in known]
    found = [one for one in (*cures, *_all(proto, failing, right)) if one.family in families]
    unique: dict[object, Candidate] = {}
    for candidate in found:
        if candidate.sessions or candidate.model is not None or candidate.variants:
            key = (tuple(candidate.sessions.items()), candidate.model and candidate.name, candidate.variants)
            unique.setdefault(key, candidate)
    return tuple(unique.values())


def _all(proto: onnx.ModelProto, failing: Sequence[Variant], right: Sequence[str]) -> Iterator[Candidate]:
    if any(variant.execution_provider == GPU for variant in failing):
        yield with_settings("layout NCHW", "layout", SessionSettings(layout="NCHW"), failing)
    for rewrite in REWRITES:
        changed = rewrite.apply(proto)
        if changed is not None:
            yield Candidate(rewrite.name, "rewrite", model=changed)
    levels: tuple[Optimization, ...] = ("extended", "basic", "disabled")
    for level in levels:
        yield with_settings(f"optimization {level}", "optimization", SessionSettings(level), failing)
    if right:
        # Only variants of the bundle that pass as it stands: what it then runs on was proven already.
        gone = ", ".join(variant.id for variant in failing)
        yield Candidate(f"{', '.join(right)} alone, without {gone}", "variants", variants=tuple(right))


def told(settings: SessionSettings) -> str:
    """Say settings in words."""
    parts = [f"layout {settings.layout}"] if settings.layout else []
    parts += [f"optimization {settings.optimization}"] if settings.optimization != "all" else []
    parts += [f"on the CPU: {', '.join(settings.cpu_nodes)}"] if settings.cpu_nodes else []
    return ", ".join(parts)
