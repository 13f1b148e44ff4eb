"""A diagnosis as plain tables and lines; the command line prints them."""

from edgekit.diagnose.result import Diagnosis, Finding, NodeFacts, Side, Trial
from edgekit.figures import figure
from edgekit.report.text import TextColumn, TextTable

_MOST_PICTURES = 3
_NOTHING = "–"
_LONGEST = 90

OUTCOMES = {
    "passes": "Nothing to diagnose",
    "found": "Found",
    "bundle": "The bundle's own files",
    "cases": "The golden cases",
    "standard": "Wrong everywhere alike",
    "unexplained": "Not explained",
    "not_run": "Not run",
}
_SIDES: dict[Side, str] = {
    "engine": "the browser",
    "desktop": "the desktop",
    "both": "both",
    "neither": "neither",
    "open": "left open",
    "unknown": "not known",
}


def where_table(diagnosis: Diagnosis) -> TextTable:
    """Return a row for each finding: the node, the error it adds, and whose fault it is.

    How far each side is off says little without the other: neither of the two is left out for want of room.
    """
    columns = (
        TextColumn("node"),
        TextColumn("in", spare=3),
        TextColumn("adds", number=True, spare=1),
        TextColumn("to its own inputs", number=True, spare=4),
        TextColumn("browser off float64", number=True),
        TextColumn("desktop off float64", number=True),
        TextColumn("wrong"),
    )
    rows = tuple(_where_row(finding) for finding in diagnosis.findings)
    return TextTable("Where: errors of the output's scale, the node alone", columns, rows)


def _where_row(finding: Finding) -> tuple[str, ...]:
    node = finding.nodes[-1]
    turn = f" turn {node.turn}" if node.turn is not None else ""
    wrong = _SIDES[finding.side] if finding.kind in ("wrong", "nonfinite") else finding.kind
    return (
        " + ".join(each.label for each in finding.nodes),
        f"{node.graph}{turn}" or "the main graph",
        error_text(finding.added),
        error_text(finding.added_own),
        error_text(finding.engine_off),
        error_text(finding.desktop_off),
        wrong,
    )


def why_table(diagnosis: Diagnosis) -> TextTable:
    """Return a row for each change that was tried, and whether it cures the failing cases."""
    columns = (TextColumn("change"), TextColumn("error", number=True), TextColumn("cures"), TextColumn("note", spare=1))
    return TextTable("Why: the model with one thing changed", columns, tuple(map(_why_row, diagnosis.trials)))


def _why_row(trial: Trial) -> tuple[str, ...]:
    word = _NOTHING if trial.cures is None else "yes" if trial.cures else "no"
    note = trial.note if trial.outcome == "done" else f"{trial.outcome}: {trial.note}"
    note = " ".join(note.split())
    return trial.change, error_text(trial.error), word, note if len(note) <= _LONGEST else note[: _LONGEST - 1] + "…"


def error_text(error: float | None) -> str:
    """Return an error relative to a scale."""
    if error is None:
        return _NOTHING
    return figure(error, 2)


def lines(diagnosis: Diagnosis) -> list[str]:
    """Return what the tables do not say: pictures, the nodes' attributes and shapes, and the conclusion."""
    found = []
    for finding in diagnosis.findings[:_MOST_PICTURES]:
        found += ["", *(_node_line(node) for node in finding.nodes), "", finding.picture]
    adapter = f", adapter {diagnosis.adapter}" if diagnosis.adapter else ""
    step = f", step {diagnosis.step}" if diagnosis.step else ""
    case = f", case {diagnosis.case}{step}" if diagnosis.case else ""
    found += ["", f"{OUTCOMES[diagnosis.outcome]}: {diagnosis.combination}, {diagnosis.runtime}{adapter}{case}"]
    return [*found, *(f"  {sentence}" for sentence in diagnosis.summary)]


def _node_line(node: NodeFacts) -> str:
    values = [f"{value.dtype}[{','.join(map(str, value.shape))}]" for value in node.inputs]
    given = [f"{value.dtype}[{','.join(map(str, value.shape))}]" for value in node.outputs]
    attributes = ", ".join(f"{name}={value}" for name, value in node.attributes)
    return f"{node.label}: ({', '.join(values)}) -> ({', '.join(given)})" + (f"  {attributes}" if attributes else "")
