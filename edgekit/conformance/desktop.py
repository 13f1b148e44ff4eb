"""Replay conformance cases in desktop onnxruntime, in child processes: a case that ends one is a reply too."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from edgekit.child import process as child
from edgekit.child.process import ChildFailedError, ChildLimits
from edgekit.conformance import suite
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.desktop import exchange
from edgekit.desktop.run import Optimization
from edgekit.errors import LimitError
from edgekit.progress import Progress, silent

_LIMITS = ChildLimits(seconds=600.0)
_NO_CASE = -1


def replay(
    cases: Sequence[Case],
    *,
    optimization: Optimization = "disabled",
    limits: ChildLimits = _LIMITS,
    progress: Progress = silent,
) -> tuple[Reply, ...]:
    """Return what desktop onnxruntime made of each case, in their order, on one thread.

    ``limits`` are those of one process; a case that crashes it, or passes a limit, is "crashed", and the others go on
    in a new one. Raises ChildFailedError when the child fails for a reason that is not a case's.
    """
    found: dict[int, Reply] = {}
    while len(found) < len(cases):
        todo = [index for index in range(len(cases)) if index not in found]
        with tempfile.TemporaryDirectory(prefix="edgekit-conformance-") as name:
            folder = Path(name)
            entries, data = suite.encode(cases, todo)
            (folder / "suite.safetensors").write_bytes(data)
            exchange.write_json(folder / "suite.json", {"entries": entries, "optimization": optimization})

            def tell(folder: Path = folder) -> None:
                progress("Replaying in desktop onnxruntime", max(0, _at(folder)) / len(cases))

            reason = _run(folder, limits, tell)
            for path in folder.glob("*.replies.json"):
                tensors = path.with_name(f"{path.name.removesuffix('.replies.json')}.safetensors")
                found |= suite.replies(exchange.read_json(path), tensors.read_bytes())
            if reason is not None:
                found[_at(folder)] = Reply("crashed", error=reason)
    return tuple(found[index] for index in range(len(cases)))


def _run(folder: Path, limits: ChildLimits, tell: Callable[[], None]) -> str | None:
    """Run one child; return why it ended early, which is the case's doing, or None."""
    try:
        child.run_module(
            "edgekit.conformance.desktop_child",
            folder,
            limits=limits,
            what="replaying conformance cases",
            each_look=tell,
        )
    except ChildFailedError as error:
        if not error.crashed or _at(folder) == _NO_CASE:
            raise
        return f"onnxruntime crashed ({error.reason})"
    except LimitError as error:
        if _at(folder) == _NO_CASE:
            raise
        return error.message
    return None


def _at(folder: Path) -> int:
    try:
        return int((folder / "at").read_bytes() or _NO_CASE)
    except (OSError, ValueError):
        return _NO_CASE
