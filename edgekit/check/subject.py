"""What rules look at: a model, what is known of it, and the target that it is meant for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import onnx

from edgekit.check.providers import Provider
from edgekit.desktop.run import Optimization
from edgekit.errors import ModelError
from edgekit.facts import shapes, strip
from edgekit.facts.shapes import Scope, ShapeTable
from edgekit.facts.types import ValueType
from edgekit.model import external_data, walk
from edgekit.model.io import LoadedModel
from edgekit.targets.load import Target

ExternalKind = Literal["missing", "short", "outside", "malformed"]


@dataclass(frozen=True)
class ExternalProblem:
    """What is wrong with a tensor's external data."""

    kind: ExternalKind
    tensor: str
    message: str
    fix: str | None


@dataclass(frozen=True, eq=False)
class Evidence:
    """What native code and the disk say of a model; the same for every target.

    ``shapes`` None: they could not be inferred, ``shapes_problem`` says why. ``checker``: what onnx.checker objects to.
    ``refused``: why the desktop runtime creates no session, by graph optimization level.
    """

    external: tuple[ExternalProblem, ...] = ()
    shapes: ShapeTable | None = None
    shapes_problem: str | None = None
    checker: str | None = None
    refused: Mapping[Optimization, str] | None = None


@dataclass(frozen=True, eq=False)
class Placed:
    """A node and the graph that it stands in."""

    node: onnx.NodeProto
    scope: Scope
    graph: onnx.GraphProto

    @property
    def name(self) -> str:
        return node_name(self.node)

    @property
    def domain(self) -> str:
        return walk.domain_name(self.node.domain)

    @property
    def operator(self) -> str:
        """The operator as a person writes it: "Conv", "com.microsoft::Gelu"."""
        domain = self.domain
        return self.node.op_type if domain == walk.DEFAULT_DOMAIN else f"{domain}::{self.node.op_type}"

    def is_standard(self, *op_types: str) -> bool:
        """Whether it is one of these operators of the default domain."""
        return self.domain == walk.DEFAULT_DOMAIN and self.node.op_type in op_types


@dataclass(frozen=True)
class Kind:
    """Nodes alike: one operator with the same dtypes (None: unknown, left out, or no tensor)."""

    domain: str
    op_type: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]

    def __str__(self) -> str:
        """As a person writes it: "CumSum (float64, int32)", "Cast (float32 → float64)"."""
        name = self.op_type if self.domain == walk.DEFAULT_DOMAIN else f"{self.domain}::{self.op_type}"
        dtypes = [dtype for dtype in self.inputs if dtype]
        other = [dtype for dtype in self.outputs if dtype and dtype not in dtypes]
        arrow = f"{' ' if dtypes else ''}→ {', '.join(other)}" if other else ""
        return f"{name} ({', '.join(dtypes)}{arrow})" if dtypes or other else name


@dataclass(frozen=True, eq=False)
class Subject:
    """A model that may be broken, and a target. ``nodes``: with local functions inlined where that could be done."""

    model: LoadedModel
    target: Target
    providers: tuple[Provider, ...]
    evidence: Evidence

    @property
    def proto(self) -> onnx.ModelProto:
        return self.model.proto

    @property
    def path(self) -> Path:
        return self.model.path

    @cached_property
    def opsets(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for entry in self.proto.opset_import:
            domain = walk.domain_name(entry.domain)
            found[domain] = max(entry.version, found.get(domain, 0))
        return found

    @cached_property
    def nodes(self) -> tuple[Placed, ...]:
        shapes_known = self.evidence.shapes
        proto = self.proto if shapes_known is None else shapes_known.inlined
        return tuple(p for p in _placed(proto.graph, ()) if p.node.domain != strip.STRIPPED_DOMAIN)

    @cached_property
    def kinds(self) -> Mapping[Kind, list[Placed]]:
        """Every kind of node, in the order in which they are met, and its nodes."""
        found: dict[Kind, list[Placed]] = {}
        for placed in self.nodes:
            inputs = tuple(self.dtypes(list(placed.node.input), placed))
            outputs = tuple(self.dtypes(list(placed.node.output), placed))
            found.setdefault(Kind(placed.domain, placed.node.op_type, inputs, outputs), []).append(placed)
        return found

    @cached_property
    def initializers(self) -> Mapping[str, onnx.TensorProto]:
        """Initializers of every graph, by name; the main graph's come first."""
        found: dict[str, onnx.TensorProto] = {}
        for graph in walk.all_graphs(self.proto):
            for tensor in graph.initializer:
                found.setdefault(tensor.name, tensor)
        return found

    @cached_property
    def constants(self) -> Mapping[str, onnx.TensorProto]:
        """Initializers, and the values of Constant nodes that hold a tensor, by name."""
        found = dict(self.initializers)
        for node in walk.all_nodes(self.proto):
            if node.op_type == "Constant" and len(node.output) == 1:
                value = attributes(node).get("value")
                if value is not None and value.HasField("t"):
                    found.setdefault(node.output[0], value.t)
        return found

    def type_of(self, name: str, placed: Placed) -> ValueType | None:
        """What is known of a value as a node sees it; None where nothing is, and for one that is left out."""
        if not name or self.evidence.shapes is None:
            return None
        return self.evidence.shapes.look(name, placed.scope)

    def dtypes(self, names: Iterator[str] | list[str], placed: Placed) -> list[str | None]:
        """The dtypes of some values of a node; None where unknown or no tensor."""
        return [None if (found := self.type_of(name, placed)) is None else found.dtype for name in names]

    def shape(self, name: str, placed: Placed) -> tuple[int | str | None, ...] | None:
        found = self.type_of(name, placed)
        return None if found is None else found.shape


def stored_bytes(tensor: onnx.TensorProto) -> int:
    """Bytes of a stored tensor; 0 where its type has no size or its shape cannot be (a rule of its own says so)."""
    try:
        return external_data.tensor_bytes(tensor)
    except ModelError:
        return 0


def node_name(node: onnx.NodeProto) -> str:
    """Name a node for a person: its name, else its first output."""
    return node.name or next((output for output in node.output if output), node.op_type)


def attributes(node: onnx.NodeProto) -> dict[str, onnx.AttributeProto]:
    """Return a node's attributes by name."""
    return {attribute.name: attribute for attribute in node.attribute}


def integers(node: onnx.NodeProto, name: str) -> tuple[int, ...] | None:
    """Return a list attribute of a node; None where it has none."""
    found = attributes(node).get(name)
    return None if found is None else tuple(found.ints)


def integer(node: onnx.NodeProto, name: str, default: int) -> int:
    """Return a whole-number attribute of a node."""
    found = attributes(node).get(name)
    return default if found is None else found.i


def text(node: onnx.NodeProto, name: str, default: str) -> str:
    """Return a text attribute of a node."""
    found = attributes(node).get(name)
    return default if found is None else found.s.decode(errors="replace")


def _placed(graph: onnx.GraphProto, scope: Scope) -> Iterator[Placed]:
    for node in graph.node:
        yield Placed(node, scope, graph)
    for _, inner, subgraph in shapes.nested(graph.node, scope):
        yield from _placed(subgraph, inner)
