"""What a run record says of a model's outputs, for its drawing."""

from pathlib import Path

from edgekit.compare import judge_under
from edgekit.errors import UsageError
from edgekit.files import sha256_file
from edgekit.records.store import Conditions, SavedRun
from edgekit.report.graph_panels import Marks
from edgekit.report.placement import placement_of


def marks_of(run: SavedRun, model: Path) -> Marks:
    """Judge a record, and return which outputs are wrong in any case, which are right in all, and where nodes ran.

    Raises UsageError when the record is of another model, has no outputs, or no golden cases to be judged by.
    """
    if run.record is None or run.case_set is None:
        lacks = "no record came back" if run.record is None else "it has no golden cases beside it to be judged by"
        raise UsageError(f"{run.place} cannot colour a drawing: {lacks}.", hint="Name a folder of 'edgekit parity -o'.")
    found = sha256_file(model)
    if run.record.hashes.model != found:
        raise UsageError(
            f"{run.place} is of another model, with sha256 {run.record.hashes.model[:16]}…, and {model} "
            f"has {found[:16]}….",
            hint="Name the model in the bundle that the record was made from.",
        )
    verdict = judge_under(run.conditions or Conditions(title=run.place.stem), run.case_set, run.record)
    judged = [output for output in verdict.outputs if output.status != "not_comparable"]
    wrong = {output.output for output in judged if output.status != "match"}
    right = {output.output for output in judged} - wrong
    if not judged:
        raise UsageError(f"{run.place} holds no outputs: {verdict.reasons[0] if verdict.reasons else verdict.status}.")
    return Marks(frozenset(wrong), frozenset(right), placement_of(run.record))
