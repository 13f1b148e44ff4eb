from dataclasses import replace
from xml.etree import ElementTree

import pytest
from report_samples import EVERY, failed, hostile, not_run, passed, refused

from edgekit.records.cases import Reference
from edgekit.records.strength import KindCount, Strength
from edgekit.records.verdict import LabelChange, LabelResult, SoakResult, Steadiness, Verdict
from edgekit.report.junit import to_xml


def suite_of(verdict: Verdict) -> ElementTree.Element:
    root = ElementTree.fromstring(to_xml([verdict]))  # noqa: S314  written a line above
    (suite,) = root
    return suite


@pytest.mark.parametrize("name", EVERY)
def test_counts_are_those_of_the_cases_and_only_a_pass_is_free_of_problems(name: str) -> None:
    verdict = EVERY[name]().verdict
    suite = suite_of(verdict)
    cases = suite.findall("testcase")
    assert len(cases) == len(verdict.outputs) + 1 == int(suite.get("tests", ""))
    counts = {tag: len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "error", "skipped")}
    assert (suite.get("failures"), suite.get("errors")) == (str(counts["failure"]), str(counts["error"]))
    assert suite.get("skipped") == str(counts["skipped"])
    assert (counts["failure"] + counts["error"] == 0) == verdict.passed == (name == "passed")
    assert cases[-1].get("name") == "verdict"


def test_a_wrong_output_is_a_failure_with_its_numbers() -> None:
    suite = suite_of(failed().verdict)
    assert suite.get("name") == "model.onnx [webgpu]" and suite.get("failures") == "4" and suite.get("errors") == "0"
    failure = suite.find("testcase/failure")
    assert failure is not None and failure.get("type") == "mismatch"
    assert "The largest error is 0.87" in str(failure.get("message"))
    assert "would pass at: rel 2.18" in str(failure.text) and "SNR: " in str(failure.text)


@pytest.mark.parametrize(("maker", "kind"), [(refused, "refused"), (not_run, "not_run")])
def test_what_did_not_run_is_an_error_in_every_case(maker: object, kind: str) -> None:
    assert callable(maker)
    suite = suite_of(maker().verdict)
    errors = suite.findall("testcase/error")
    assert len(errors) == len(suite.findall("testcase")) == 3
    assert {error.get("type") for error in errors} == {kind}


def test_an_output_that_cannot_be_compared_is_skipped_with_the_reason() -> None:
    verdict = passed().verdict
    left = replace(verdict.outputs[0], status="not_comparable", metrics=None, tolerance=None, reason="a sequence")
    skipped = suite_of(replace(verdict, outputs=(left,))).find("testcase/skipped")
    assert skipped is not None and skipped.get("message") == "a sequence"


def test_characters_that_xml_cannot_hold_are_escaped_and_names_stay_on_one_line() -> None:
    data = to_xml([hostile().verdict])
    assert b"\x1b" not in data and b"\x00" not in data and b"<script>" not in data
    suite = suite_of(hostile().verdict)
    name = str(suite.find("testcase").get("name"))  # type: ignore[union-attr]
    assert "<script>alert(1)</script>" in name and "\\n\\x1b[31m\\x00\\ufffe" in name and "\n" not in name
    assert "é 日本語" in name


def test_several_verdicts_are_several_suites_in_one_document() -> None:
    root = ElementTree.fromstring(to_xml([passed().verdict, failed().verdict]))  # noqa: S314
    assert [suite.tag for suite in root] == ["testsuite", "testsuite"]


def test_a_suite_of_one_variant_is_named_so_and_the_reference_is_said_as_everywhere() -> None:
    verdict = replace(passed().verdict, variant="wasm", reference=Reference("r.npz", "recorded outputs", "", "none"))
    suite = suite_of(verdict)
    assert suite.get("name") == "model.onnx [webgpu's variant wasm]"
    said = {entry.get("name"): entry.get("value") for entry in suite.findall("properties/property")}
    assert said["reference"] == "r.npz (recorded outputs)"


def test_what_a_verdict_is_worth_is_the_output_of_its_suite() -> None:
    soak = SoakResult("zeros", 200, 200, 3, 17, 1e-7, 2.0, 2.1, 10**6, 10**6, None, None, False)
    labels = LabelResult("scores", 10, 9, 8, 0, (LabelChange("a\x1b", 0, "3", "3", "5"),))
    verdict = replace(
        passed().verdict,
        strength=Strength("0" * 64, 0, 9, 1, 0, (KindCount("weight", 1, 1),), 1, 0, (), ()),
        steadiness=Steadiness(11, 10, 1, 1, 1e-8, "zeros", soak),
        labels=(labels,),
    )
    suite = suite_of(verdict)
    said = suite.findtext("system-out")
    assert said is not None and "\x1b" not in said
    for part in (
        "strength: the cases catch 1 of 1",
        "the same bits: 10 of 11 cases",
        "200 runs of case 'zeros': 3 gave other bits",
        "labels of 'scores': device 8 of 10",
        "changed on the device: a\\x1b (label 3: desktop 3, device 5)",
    ):
        assert part in said
    assert suite.get("failures") == suite.get("errors") == "0"
    order = [child.tag for child in suite_of(replace(verdict, warnings=("w",)))]
    assert order[-2:] == ["system-out", "system-err"]


def test_a_verdict_of_which_nothing_more_is_known_has_no_output() -> None:
    assert suite_of(replace(passed().verdict, steadiness=None)).find("system-out") is None
