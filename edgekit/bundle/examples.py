"""Examples that travel with a Linux bundle: a request, and programs that send pictures or sound to the service."""

import json
from collections.abc import Mapping

from edgekit import resources
from edgekit.model.io import LoadedModel
from edgekit.records.cases import CaseSet
from edgekit.records.tensors import Value

_LARGEST_REQUEST = 1 << 20


def files(model: LoadedModel, cases: CaseSet) -> Mapping[str, bytes]:
    """Return the examples by path. The request is the first golden case, where it is small enough to read."""
    folder = resources.root("templates") / "linux" / "examples"
    found = {f"examples/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    request = json.dumps({"inputs": {value.name: _listed(value) for value in cases.cases[0].inputs}}).encode()
    if len(request) <= _LARGEST_REQUEST:
        found["examples/request.json"] = request + b"\n"
    return found


def _listed(value: Value) -> object:
    return [] if value.array is None else value.array.tolist()
