"""The look of a conclusion on the page: its kind, which gives the colour, and its mark."""

from edgekit.records.verdict import OutputVerdict, VerdictStatus
from edgekit.report.page import Kind

VERDICT_KINDS: dict[VerdictStatus, Kind] = {"passed": "good", "failed": "bad", "refused": "caution", "not_run": "idle"}
MARKS: dict[VerdictStatus, str] = {"passed": "✓", "failed": "✗", "refused": "!", "not_run": "?"}


def output_kind(output: OutputVerdict) -> Kind:
    """Return the kind of one output's verdict."""
    return "good" if output.status == "match" else "idle" if output.status == "not_comparable" else "bad"
