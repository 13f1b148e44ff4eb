"""What a diagnosis says: where, why, and what cures it."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from edgekit.records.jsonable import jsonable
from edgekit.records.settings import SessionSettings

# passes: parity holds. found: a node (or several together) is to blame. bundle: the published runtime is right where
# the bundle is not. cases: the golden answers are not what the model gives, or cannot be. standard: every engine
# agrees, and the standard says something else. unexplained: it fails, and no node does. not_run: nothing ran.
Outcome = Literal["passes", "found", "bundle", "cases", "standard", "unexplained", "not_run"]
# Which side is wrong by the float64 evaluation.
Side = Literal["engine", "desktop", "both", "neither", "open", "unknown"]
Kind = Literal["wrong", "nonfinite", "refused", "crashed", "amplifies"]


@dataclass(frozen=True)
class ValueFacts:
    """A value that a node reads or gives. ``error``: of the engine's value where it was seen, relative to the scale of
    the reference; ``wrong``: it is beyond the tolerance. ``constant``: it is a weight."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    constant: bool = False
    error: float | None = None
    wrong: bool = False


@dataclass(frozen=True)
class NodeFacts:
    """A node. ``name``: as the model has it, "" where it has none; ``line_name``: in the model laid open; ``node``: as
    ``check`` calls it, by its name or else by what it gives.

    ``graph``: the path of the graph that holds it ("" is the main one); ``turn``: of the loop that it is in.
    """

    name: str
    line_name: str
    op_type: str
    domain: str
    graph: str
    turn: int | None
    attributes: tuple[tuple[str, str], ...]
    inputs: tuple[ValueFacts, ...]
    outputs: tuple[ValueFacts, ...]
    node: str

    @property
    def label(self) -> str:
        """Operator and name, for a person; of a node without a name its first output: "Conv → a7"."""
        return f"{self.op_type} '{self.name}'" if self.name else f"{self.op_type} {self.node}"


@dataclass(frozen=True)
class Finding:
    """A place where an error is born.

    ``nodes``: one, or the fewest that show it together. ``added``: the error that they add to the reference's inputs,
    relative to the output's scale; ``added_own``: to the inputs that the engine itself made, against the desktop on
    the same ones. Infinite: NaN or infinity. None: not measured. ``engine_off``, ``desktop_off``: distance of each
    side from the float64 evaluation of the reference's inputs; ``side``: who is wrong. ``gain``: by how much the node
    enlarges errors of its inputs, where it adds none. ``twins``: like nodes elsewhere in the model that fail too, or
    that this case does not reach, by name; ``nameless_twins``: those that have none, by what they give. ``note``: what
    else there is to say. ``picture``: the neighbourhood, as text.
    """

    kind: Kind
    nodes: tuple[NodeFacts, ...]
    added: float | None
    added_own: float | None
    side: Side
    engine_off: float | None
    desktop_off: float | None
    gain: float | None
    twins: tuple[str, ...]
    note: str
    picture: str
    nameless_twins: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes' own names and their twins', without those that have none."""
        own = dict.fromkeys(node.name for node in self.nodes if node.name)
        return tuple(dict.fromkeys((*own, *self.twins)))


@dataclass(frozen=True)
class Trial:
    """The model again, with one thing changed. ``error``: the largest, as parity would judge it; None: nothing came.

    ``cures``: every case that failed is right. None: it could not be tried, and ``note`` says why.
    """

    change: str
    outcome: str
    error: float | None
    cures: bool | None
    note: str = ""
    settings: SessionSettings | None = None


@dataclass(frozen=True)
class Failure:
    """An output that parity judged wrong. ``error``: relative to its scale; None where it did not come."""

    case: str
    output: str
    error: float | None
    allowed: float | None
    reason: str


@dataclass(frozen=True)
class Diagnosis:
    """``combination``: browser, variant and threads, in words. ``step``: of a case that feeds back, from 0.

    ``summary``: sentences. ``repro``: the folder, where one was written.
    """

    outcome: Outcome
    title: str
    target: str
    combination: str
    runtime: str
    adapter: str
    case: str | None
    step: int
    failures: tuple[Failure, ...]
    findings: tuple[Finding, ...]
    trials: tuple[Trial, ...]
    summary: tuple[str, ...]
    repro: str | None = None

    @property
    def cures(self) -> tuple[Trial, ...]:
        """The changes that make the model right."""
        return tuple(trial for trial in self.trials if trial.cures)


def to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as a JSON value. NaN and infinities become strings."""
    document: dict[str, Any] = jsonable({**asdict(diagnosis), "cures": [trial.change for trial in diagnosis.cures]})
    for finding in document["findings"]:
        for node in finding["nodes"]:
            del node["line_name"]  # made up where the model has none
    return document
