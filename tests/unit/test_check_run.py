"""Finding rules, asking them, and sorting what they say; broken files are findings, and crashes are no end."""

from dataclasses import replace
from pathlib import Path

import malformed_files
import onnx
import pytest
from check_samples import BOTH, CPU_ALONE, find, ids, in_this_process, page, without_sessions
from models_text import LINEAR, LOCAL_FUNCTION, NESTED_IF, PRIVATE_DOMAIN, loaded, parse, write

from edgekit.check import evidence, providers, run
from edgekit.check.finding import SEVERITIES
from edgekit.check.subject import Evidence
from edgekit.child.process import ChildFailedError
from edgekit.errors import LimitError, ModelError, UsageError
from edgekit.targets import load as targets
from edgekit.targets.load import Limits
from edgekit.targets.options import ANDROID, LINUX, WEB


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    in_this_process(monkeypatch)
    without_sessions(monkeypatch)


def test_rules_are_found_in_their_modules_with_ids_of_their_own() -> None:
    rules = run.all_rules()
    assert len({rule.id for rule in rules}) == len(rules) > 40
    assert all(rule.severity in SEVERITIES and not rule.title.endswith(".") for rule in rules)


@pytest.mark.parametrize("text", [LINEAR, NESTED_IF, LOCAL_FUNCTION])
@pytest.mark.usefixtures("quick")
def test_a_sound_model_has_no_errors_and_no_warnings(text: str, tmp_path: Path) -> None:
    found = find(text, tmp_path, CPU_ALONE)
    assert [finding for finding in found if finding.severity != "note"] == []


def test_a_sound_model_is_taken_by_checker_and_runtime_in_their_own_processes(tmp_path: Path) -> None:
    (found,) = run.check_file(write(LINEAR, tmp_path), [CPU_ALONE]).targets
    assert found.runs
    assert ids(found.findings) <= {"operator-unmeasured"}


@pytest.mark.usefixtures("quick")
def test_a_runtime_for_other_devices_is_looked_up_in_the_table_of_the_desktop(tmp_path: Path) -> None:
    native = [target for name in targets.ids() if (target := targets.load(name)).kind != WEB]
    assert {target.kind for target in native} == {LINUX, ANDROID}
    for target in native:
        (provider,) = providers.of(target)
        assert provider.measured is not None and provider.measured.runtime.package == "onnxruntime"
        notes = [finding.message for finding in find(LINEAR, tmp_path, target) if finding.rule == "operator-unmeasured"]
        if target.runtime.package == "onnxruntime":
            assert notes == []
        else:
            assert len(notes) == 1 and f"of {provider.stand_in} on the desktop" in notes[0]
            assert "Kernels of xnnpack itself were not measured" in notes[0]


@pytest.mark.usefixtures("quick")
def test_the_worst_comes_first_and_one_error_means_that_it_does_not_run(tmp_path: Path) -> None:
    report = run.check_file(write(PRIVATE_DOMAIN, tmp_path), [BOTH, CPU_ALONE])
    assert [each.target for each in report.targets] == ["both", "cpu"]
    for each in report.targets:
        assert not each.runs
        assert (each.findings[0].rule, each.findings[0].node) == ("custom-operator", "a")
        order = [SEVERITIES.index(finding.severity) for finding in each.findings]
        assert order == sorted(order)


@pytest.mark.usefixtures("quick")
def test_a_rule_that_finds_very_much_is_cut_short(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    proto.graph.node[0].input.extend(f"gone{i}" for i in range(50))
    found = [finding for finding in find(proto, tmp_path) if finding.rule == "missing-value"]
    assert len(found) == run.MOST_OF_ONE_RULE + 1
    assert found[-1].message == "30 more like these."


def test_a_rules_own_words_stand_for_those_of_the_tools(tmp_path: Path) -> None:
    model = loaded(LINEAR, tmp_path)
    said = Evidence(checker="objects", shapes_problem="objects", refused={"disabled": "refuses"})
    assert "runtime-refuses" in ids(run.check_known(model, CPU_ALONE, said))
    assert not {"onnx-checker", "type-conflict"} & ids(run.check_known(model, CPU_ALONE, said))
    strict = replace(CPU_ALONE, limits=Limits(file_bytes=1, ir_version=3, opset=26))
    assert not {"onnx-checker", "runtime-refuses"} & ids(run.check_known(model, strict, said))
    assert "onnx-checker" in ids(run.check_known(model, CPU_ALONE, Evidence(checker="objects")))


@pytest.mark.parametrize("location", ["gone.bin", "../w.bin", "/etc/passwd"])
@pytest.mark.usefixtures("quick")
def test_nothing_native_opens_a_model_whose_weights_are_elsewhere(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(path: Path) -> None:
        raise AssertionError(path)

    monkeypatch.setattr(evidence, "_checker", never)
    monkeypatch.setattr(evidence, "_refusals", never)
    text = page("external-data-missing").found.replace("gone.bin", location)
    (found,) = (f for f in find(text, tmp_path) if f.severity == "error")
    assert (found.rule, found.tensor) == (f"external-data-{'missing' if location[0] == 'g' else 'outside'}", "w")


def test_a_link_that_leads_out_is_outside(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.bin").write_bytes(b"\0" * 8)
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "gone.bin").symlink_to(tmp_path / "elsewhere.bin")
    path = write(page("external-data-missing").found, folder)
    _, known = evidence.gather(path, onnx.load(path, load_external_data=False))
    assert [problem.kind for problem in known.external] == ["outside"]


@pytest.mark.parametrize("error", [LimitError("too slow"), ModelError("it crashed")])
def test_a_tool_that_crashes_or_hangs_is_a_finding_and_not_the_end(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_this_process(monkeypatch)

    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(evidence.desktop, "run", fails)
    assert "runtime-refuses" in ids(find(LINEAR, tmp_path, CPU_ALONE))
    without_sessions(monkeypatch)
    monkeypatch.setattr(evidence.shapes, "infer", fails)
    assert "type-conflict" in ids(find(LINEAR, tmp_path, CPU_ALONE))


def test_a_checker_that_crashes_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crashes(module: str, folder: Path, **_: object) -> None:
        raise ChildFailedError("The process crashed", reason="SIGSEGV", crashed=True, output="")

    monkeypatch.setattr(evidence.child, "run_module", crashes)
    assert evidence._checker(tmp_path / "m.onnx", evidence.LIMITS) == "onnx's checker ended: SIGSEGV"


def test_no_file_and_no_model_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no file"):
        run.check_file(tmp_path / "gone.onnx", [BOTH])
    (tmp_path / "m.onnx").write_bytes(b"Not a model.\n")
    with pytest.raises(ModelError, match="text file"):
        run.check_file(tmp_path / "m.onnx", [BOTH])


@pytest.mark.usefixtures("quick")
def test_twenty_thousand_nodes_take_seconds(tmp_path: Path) -> None:
    names = [f"v{i}" for i in range(20_001)]
    proto = parse(LINEAR.replace("[N, 2] x", "[N, 3] x"))
    del proto.graph.node[:]
    del proto.graph.initializer[:]
    proto.graph.node.extend(
        onnx.helper.make_node("Neg", [a], [b]) for a, b in zip(["x", *names], [*names, "y"], strict=True)
    )
    limited = replace(BOTH, limits=replace(BOTH.limits, nodes=10_000))
    assert "many-nodes" in ids(find(proto, tmp_path, limited))


@pytest.mark.parametrize("name", ["n" * 300, "n" * 5000, "m.onnx/w"])
def test_external_data_of_a_name_that_no_file_has_is_a_finding(tmp_path: Path, name: str) -> None:
    (tmp_path / "m.onnx").write_bytes(malformed_files.external({"location": name}).SerializeToString())
    report = run.check_file(tmp_path / "m.onnx", [BOTH])
    assert not report.targets[0].runs
    assert {"external-data-malformed", "external-data-missing"} & {each.rule for each in report.targets[0].findings}
