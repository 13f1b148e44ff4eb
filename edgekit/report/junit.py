"""Verdicts as JUnit XML, which every continuous integration service reads.

A verdict is a test suite, an output of a case is a test case, and the verdict itself is one more: what is wrong with a
record as a whole (another model, an execution provider that refused) belongs to no output. Wrong outputs are failures.
What says nothing about the target, because it did not run there, is an error, never a pass. What the verdict is worth
(the strength of its cases, steadiness, the task's own result) is the suite's output; warnings are its error output.
"""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from edgekit.records.verdict import OutputVerdict, Verdict
from edgekit.report import words

# What XML 1.0 cannot hold, not even as a reference, and the separators that attribute values would fold.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FOLDED = re.compile("[\t\n\r]")


def to_xml(verdicts: Sequence[Verdict]) -> bytes:
    """Return one document with a test suite for each verdict, as UTF-8."""
    root = ElementTree.Element("testsuites")
    for verdict in verdicts:
        _add_suite(root, verdict)
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add_suite(root: ElementTree.Element, verdict: Verdict) -> None:
    subject = words.subject(verdict)
    name = f"{verdict.title} [{subject}]" if subject else verdict.title
    suite = ElementTree.SubElement(root, "testsuite", name=_line(name))
    _add_properties(suite, verdict)
    for output in verdict.outputs:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_line(name), name=_line(f"{output.case} / {output.output}")
        )
        _add_result(case, verdict, output)
    whole = ElementTree.SubElement(suite, "testcase", classname=_line(name), name="verdict")
    if not verdict.passed:
        kind = "failure" if verdict.status == "failed" else "error"
        _add_problem(whole, kind, verdict.status, words.VERDICT_WORDS[verdict.status], "\n".join(verdict.reasons))
    # What the verdict is worth changes no count: steadiness and labels of the device, strength of the cases.
    if worth := words.worth(verdict):
        ElementTree.SubElement(suite, "system-out").text = _text("\n".join(worth))
    if verdict.warnings:
        ElementTree.SubElement(suite, "system-err").text = _text("\n".join(verdict.warnings))
    suite.set("tests", str(len(verdict.outputs) + 1))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))


def _add_properties(suite: ElementTree.Element, verdict: Verdict) -> None:
    values = {
        "status": verdict.status,
        "expected": str(verdict.expected),
        "compared": str(verdict.compared),
        "reference": words.reference(verdict.reference),
    }
    if verdict.environment is not None:
        values["environment"] = words.where(verdict.environment)
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in values.items():
        ElementTree.SubElement(properties, "property", name=key, value=_line(value))


def _add_result(case: ElementTree.Element, verdict: Verdict, output: OutputVerdict) -> None:
    reason = output.reason or ""
    if output.status == "not_comparable":
        ElementTree.SubElement(case, "skipped", message=_line(reason))
    elif verdict.status in ("refused", "not_run"):
        message = words.OUTPUT_WORDS[output.status] if verdict.has_nothing else "another execution provider ran"
        _add_problem(case, "error", verdict.status, message, _details(output))
    elif output.status != "match":
        _add_problem(case, "failure", output.status, reason, _details(output))


def _details(output: OutputVerdict) -> str:
    lines = [output.reason or words.OUTPUT_WORDS[output.status], f"allowed: {words.tolerance(output)}"]
    if (m := output.metrics) is not None:
        lines += [
            f"would pass at: {words.would_pass(output)}",
            f"max abs: {words.number(m.max_abs)}",
            f"of scale: {words.number(m.max_rel)}",
            f"RMSE: {words.number(m.rmse)}",
            f"SNR: {words.decibels(m.snr_db)} dB",
            f"cosine: {words.cosine(m.cosine)}",
            f"top-1: {words.top1(m)}",
            f"NaN: {m.nan_count} (reference {m.reference_nan_count})",
            f"infinite: {m.inf_count} (reference {m.reference_inf_count})",
        ]
    return "\n".join(lines)


def _add_problem(case: ElementTree.Element, tag: str, kind: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, tag, type=kind, message=_line(message)).text = _text(text)


def _text(text: str) -> str:
    return _ILLEGAL.sub(_escaped, text)


def _line(text: str) -> str:
    """Make text fit for an attribute, where a parser would turn line ends into spaces."""
    return _FOLDED.sub(_escaped, _text(text))


def _escaped(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode()
