"""What the standard says: the reference evaluator of the onnx package, with all floats and weights in float64.

It shares no code with onnxruntime, so it can say which of two answers is the right one. It is Python and slow, and not
every operator is there; what it cannot give is no answer.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from edgekit.child import process as child
from edgekit.child.process import ChildFailedError, ChildLimits
from edgekit.conformance import suite
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.desktop import exchange
from edgekit.errors import LimitError

SECONDS = 60.0


def evaluate(cases: Sequence[Case], *, seconds: float = SECONDS) -> tuple[Reply, ...]:
    """Return what the evaluator makes of each case, in a child process; "failed" where it cannot say.

    Floats of the outputs are float64. ``seconds``: for all; when they are over, what is left has failed.
    """
    if not cases:
        return ()
    with tempfile.TemporaryDirectory(prefix="edgekit-exact-") as name:
        folder = Path(name)
        entries, data = suite.encode(cases, range(len(cases)))
        (folder / "suite.safetensors").write_bytes(data)
        exchange.write_json(folder / "suite.json", {"entries": entries, "seconds": seconds})
        try:
            child.run_module(
                "edgekit.diagnose.exact_child",
                folder,
                limits=ChildLimits(seconds=2 * seconds),
                what="evaluating in float64",
            )
        except (ChildFailedError, LimitError) as error:
            # One case of several may have done it: each is then tried alone.
            if len(cases) == 1:
                return (Reply("failed", error=error.message),)
            return tuple(reply for case in cases for reply in evaluate([case], seconds=seconds / len(cases)))
        document = exchange.read_json(folder / "replies.json")
        found = suite.replies(document, (folder / "replies.safetensors").read_bytes())
    return tuple(found[index] for index in range(len(cases)))
