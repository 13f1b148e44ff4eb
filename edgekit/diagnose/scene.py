"""One model laid open for one set of inputs: the values that it has on the desktop, and in the browser."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import onnx
from onnx import helper

from edgekit.conformance.suite import Reply
from edgekit.diagnose.lab import Error, Lab, arrays_of, case_of
from edgekit.isolate import names as naming
from edgekit.isolate.cut import constants, exposed
from edgekit.isolate.straight import Straight
from edgekit.records.settings import DEFAULT, SessionSettings
from edgekit.records.tensors import Array, Value

GROUP_BYTES = 32 << 20
MOST_BYTES = 256 << 20
_GROUP_NAMES = 400
_NO_TENSOR = ("Sequence", "SplitToSequence", "Optional", "ZipMap", "DictVectorizer")


@dataclass(frozen=True, eq=False)
class Scene:
    """A straight line and its inputs.

    ``whole_model``: what the line was made of, functions inlined. ``reference``: values on the desktop, as far as they
    were asked for. ``own``: values in the browser, of runs that gave them beside the outputs; ``errors``: of these
    against those. ``unmasked``: for each such run, whether its outputs were wrong too. ``sizes``: bytes of values, at
    most.
    """

    line: Straight
    inputs: tuple[Value, ...]
    lab: Lab
    whole_model: onnx.ModelProto
    settings: SessionSettings = DEFAULT
    reference: dict[str, Array] = field(default_factory=dict)
    own: dict[str, Array] = field(default_factory=dict)
    errors: dict[str, Error] = field(default_factory=dict)
    unmasked: list[bool] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reference.update((value.name, value.array) for value in self.inputs if value.array is not None)

    @cached_property
    def weights(self) -> dict[str, Array]:
        """The initializers, by name."""
        return constants(self.model)

    @property
    def masked(self) -> bool:
        """Whether a run that gave values had right outputs: then giving them changes what fails."""
        return not all(self.unmasked)

    @property
    def model(self) -> onnx.ModelProto:
        return self.line.model

    @property
    def nodes(self) -> list[onnx.NodeProto]:
        return list(self.model.graph.node)

    @property
    def results(self) -> list[str]:
        """The names of the model's outputs."""
        return [info.name for info in self.model.graph.output]

    def made_by(self) -> dict[str, onnx.NodeProto]:
        """Return the node that gives each value."""
        return {name: node for node in self.model.graph.node for name in node.output if name}

    def reads(self, node: onnx.NodeProto) -> list[str]:
        """Return the values that a node reads, without weights, each once."""
        return [name for name in dict.fromkeys(naming.reads(node)) if name not in self.weights]

    def values(self) -> list[str]:
        """Return the values that nodes give and a device could return, in the order of the line."""
        return [
            name
            for node in self.model.graph.node
            if not node.op_type.startswith(_NO_TENSOR)
            for name in node.output
            if name
        ]

    def weigh(self, names: Sequence[str]) -> None:
        """Learn how many bytes (at most) each value takes, from one run on the desktop that returns nothing else."""
        names = [name for name in names if name not in self.sizes]
        if not names:
            return
        model = exposed(self.model, names, only=True)
        del model.graph.output[:]
        for name in names:
            model.graph.node.append(helper.make_node("Size", [name], [f"{name}/size"]))
            model.graph.output.append(onnx.ValueInfoProto(name=f"{name}/size"))
        (reply,) = self.lab.desktop([case_of(model, self.inputs)])
        found = arrays_of(reply)
        if reply.outcome != "done" and len(names) > 1:  # one of them is no tensor
            half = len(names) // 2
            self.weigh(names[:half])
            self.weigh(names[half:])
            return
        self.sizes.update((name, 8 * int(found[f"{name}/size"]) if f"{name}/size" in found else 0) for name in names)

    def groups(self, names: Sequence[str]) -> list[list[str]]:
        """Split names so that the values of each group can be returned at once."""
        self.weigh(names)
        found: list[list[str]] = [[]]
        room = GROUP_BYTES
        for name in names:
            size = self.sizes.get(name, 0)
            if found[-1] and (size > room or len(found[-1]) >= _GROUP_NAMES):
                found.append([])
                room = GROUP_BYTES
            found[-1].append(name)
            room -= size
        return [group for group in found if group]

    def fetch(self, names: Iterable[str]) -> None:
        """Get the reference's values of ``names`` that are not known yet."""
        missing = [name for name in names if name not in self.reference and name not in self.weights]
        groups = self.groups(missing)
        if not groups:
            return
        replies = self.lab.desktop([case_of(exposed(self.model, group), self.inputs) for group in groups])
        for group, reply in zip(groups, replies, strict=True):
            if reply.outcome != "done" and len(group) > 1:
                self.fetch(group[: len(group) // 2])
                self.fetch(group[len(group) // 2 :])
            self.reference.update(arrays_of(reply))

    def look(self, names: Sequence[str]) -> None:
        """Have the browser give the values called ``names`` beside its outputs, and measure them."""
        names = [name for name in names if name not in self.errors and name in self.sizes]
        self.fetch([*names, *self.results])
        names = [name for name in names if name in self.reference]
        groups = self.groups(names) or [[]]
        cases = [case_of(exposed(self.model, group), self.inputs, self.settings) for group in groups]
        for group, reply in zip(groups, self.lab.browser(cases), strict=True):
            if reply.outcome != "done" and len(group) > 1:
                self.look(group[: len(group) // 2])
                self.look(group[len(group) // 2 :])
            else:
                self._learn(group, reply)

    def _learn(self, group: Sequence[str], reply: Reply) -> None:
        given = arrays_of(reply)
        for name in (*group, *self.results):
            if name in given and name in self.reference:
                error = self.lab.error(given[name], self.reference[name])
                if name not in self.errors or name in group:
                    self.errors[name], self.own[name] = error, given[name]
        if reply.outcome == "done":
            results = [
                self.lab.error(given.get(name), self.reference[name]) for name in self.results if name in self.reference
            ]
            self.unmasked.append(any(error.wrong for error in results))

    def is_wrong(self, name: str) -> bool:
        return name in self.errors and self.errors[name].wrong

    def descendants(self, names: Iterable[str]) -> list[onnx.NodeProto]:
        """Return the nodes that read what those called ``names`` give, directly or not, in the order of the line."""
        begun = set(names)
        given = {name for node in self.model.graph.node if node.name in begun for name in node.output if name}
        found = []
        for node in self.model.graph.node:
            if node.name not in begun and given.intersection(naming.reads(node)):
                found.append(node)
                given |= {name for name in node.output if name}
        return found

    def ancestors(self, names: Iterable[str]) -> list[onnx.NodeProto]:
        """Return the nodes that the values called ``names`` come from, in the order of the line."""
        made_by = self.made_by()
        waiting, seen = list(names), set[str]()
        while waiting:
            node = made_by.get(waiting.pop())
            if node is not None and node.name not in seen:
                seen.add(node.name)
                waiting += self.reads(node)
        return [node for node in self.model.graph.node if node.name in seen]
