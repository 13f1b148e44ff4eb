"""How a session is created where that is not left to onnxruntime: in a trial, on a bundle's page, in a record."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from edgekit.records.jsonable import jsonable

Optimization = Literal["all", "extended", "basic", "disabled"]
Layout = Literal["NCHW", "NHWC"]


@dataclass(frozen=True)
class SessionSettings:
    """Options of a session, in onnxruntime-web's own words.

    ``optimization``: the graph optimization level. ``layout``: the one that WebGPU turns convolutions to; None: its
    own choice. ``cpu_nodes``: names of nodes that WebGPU leaves to the CPU. An execution provider that has no such
    option ignores ``layout`` and ``cpu_nodes``.
    """

    optimization: Optimization = "all"
    layout: Layout | None = None
    cpu_nodes: tuple[str, ...] = ()


DEFAULT = SessionSettings()


def to_json(settings: SessionSettings) -> dict[str, Any]:
    """Return the settings as a JSON value."""
    document: dict[str, Any] = jsonable(asdict(settings))
    return document


def from_json(document: dict[str, Any]) -> SessionSettings:
    """Undo ``to_json``, of a document that was checked."""
    return SessionSettings(**{**document, "cpu_nodes": tuple(document["cpu_nodes"])})
