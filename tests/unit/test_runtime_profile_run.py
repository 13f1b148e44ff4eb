"""A profile is measured: a handful of cases on a real recording runtime, in a real Chromium."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import models_text
import numpy as np
import onnx.parser
import ort_in_node
import pytest
from ort_in_node import CPU

from edgekit import runtime_profile
from edgekit.cli.main import run
from edgekit.conformance.cases import Case, Operator
from edgekit.errors import MissingToolError, ParityError
from edgekit.facts import study
from edgekit.model import io as model_io
from edgekit.records.tensors import value_of
from edgekit.runtime import cut, fetch, keep
from edgekit.runtime import profile as profiles
from edgekit.runtime.profile import OperatorFunctions, Profile
from edgekit.wasm import texts
from edgekit.wasm.module import parse

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("recording")]

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
NUMPY = {"float": np.float32, "double": np.float64, "int64": np.int64}


def case(name: str, text: str, operator: Operator | None, dtype: str = "float") -> Case:
    model = onnx.parser.parse_model(f"{HEAD} ({dtype}[N] x) => ({dtype}[N] y) {{ {text} }}")
    given = (value_of("x", np.array([1, 2, 3], NUMPY[dtype])),)
    return Case(name, "standard", model.SerializeToString(), given, (), operator)


def unary(op_type: str, since: int, dtype: str = "float") -> Case:
    operator = Operator("", op_type, since, (np.dtype(NUMPY[dtype]).name,))
    return case(f"test_{op_type.lower()}", f"y = {op_type}(x)", operator, dtype)


# No build has kernels for these of double; where three operators are refused, that is nobody's own.
REFUSED = tuple(unary(name, 9, "double") for name in ("Acosh", "Asinh", "Atanh"))
CASES = (
    unary("Identity", 16),
    case("add", "y = Add(x, x)", Operator("", "Add", 14, ("float32",))),
    case("add of int64", "y = Add(x, x)", Operator("", "Add", 14, ("int64",)), "int64"),
    unary("Acosh", 9),
    *REFUSED,
    case("two nodes", "a = Exp(x) y = Add(a, x)", None),
)


@pytest.fixture(scope="module")
def stock() -> Path:
    """The folder of the runtime in the cache that all tests share."""
    return fetch.fetch().folder


@pytest.fixture(scope="module")
def measured() -> Profile:
    return runtime_profile.measure(fetch.fetch(), CPU, CASES)


def of(profile: Profile, op_type: str, dtype: str = "float32") -> frozenset[int]:
    (found,) = (one.functions for one in profile.operators if (one.op_type, one.dtypes) == (op_type, (dtype,)))
    return found


def test_it_belongs_to_the_build_that_was_measured_and_survives_its_file(measured: Profile) -> None:
    runtime = fetch.fetch()
    assert (measured.variant, measured.wasm_sha256) == ("wasm", runtime.files[CPU.wasm])
    assert (measured.package, measured.version) == (runtime.package, runtime.version)
    assert profiles.from_bytes(profiles.to_bytes(measured), Path("p")) == measured
    known = profiles.find(measured.wasm_sha256)
    assert known is not None
    assert (measured.count, measured.kernels) == (known.count, known.kernels)


def test_start_up_is_apart_from_what_operators_enter_in_each_dtype(measured: Profile) -> None:
    assert 2_000 < len(measured.start) < measured.count / 4
    floats, ints, acosh = of(measured, "Add"), of(measured, "Add", "int64"), of(measured, "Acosh")
    assert all(not some & measured.start for some in (floats, ints, acosh))
    assert floats - ints and ints - floats and acosh - floats
    assert len(floats) < 500
    # Of a session that does nothing, nothing is left beyond start-up.
    assert not of(measured, "Identity")


def test_the_kernel_of_an_operator_is_among_its_functions_and_that_of_another_is_not(measured: Profile) -> None:
    assert measured.kernels is not None
    creating = {
        op: of(measured, op) & frozenset().union(*measured.kernels.builders.values()) for op in ("Add", "Acosh")
    }
    assert all(creating.values())
    assert not creating["Add"] & creating["Acosh"]


def test_sessions_of_several_nodes_are_known_by_their_operators(measured: Profile) -> None:
    (model,) = measured.models
    assert model.operators == {("", "Exp"), ("", "Add")}
    assert of(measured, "Add") & model.functions
    assert model.functions - of(measured, "Add")


def test_what_refused_sessions_enter_belongs_to_no_operator(measured: Profile) -> None:
    assert measured.failures
    assert not measured.failures & measured.start
    assert not [one for one in measured.operators if one.dtypes == ("float64",)]


def test_the_twin_too_few_operators_that_fail_say_nothing(measured: Profile) -> None:
    replies = [(each, runtime_profile.Reply("refused", functions=bytes([0, 1]))) for each in REFUSED]
    assert runtime_profile._failures(replies) == {8}
    assert runtime_profile._failures(replies[:2]) == frozenset()
    assert runtime_profile._failures([*replies[:2], replies[0]]) == frozenset()


def test_threads_enter_more_and_may_enter_what_they_did_not(measured: Profile) -> None:
    assert len(measured.threads) > 10
    assert max(measured.threads) < measured.count


def test_descriptions_for_people_are_told_from_texts_that_code_reads(measured: Profile) -> None:
    found = {text.address: text for text in texts.texts(parse((fetch.fetch().folder / CPU.wasm).read_bytes()))}
    described = [found[text.address] for text in measured.texts if text.documentation]
    assert len(described) > 200
    assert any(b"element-wise" in text.data for text in described)
    assert not any(text.shared for text in described)
    assert not any(text.data.startswith((b"tensor(", b"seq(", b"{")) for text in described)
    assert {text.address for text in measured.texts} == found.keys()


def test_a_model_of_the_measured_operators_runs_on_what_the_profile_alone_keeps(
    measured: Profile, tmp_path: Path
) -> None:
    model = models_text.write(f"{HEAD} (float[N] x) => (float[N] y) {{ y = Add(x, x) }}", tmp_path)
    operators = study.study(model_io.load(model)).facts.operators
    kept = keep.choose(measured, operators, recorded=None).functions
    wasm = cut.cut((fetch.fetch().folder / CPU.wasm).read_bytes(), measured, kept, None).wasm
    assert ort_in_node.answer(wasm, model, {"x": np.array([1, 2], np.float32)}, tmp_path) == {"y": [2, 4]}


def test_a_page_that_does_not_start_and_a_browser_that_is_not_there_are_errors(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError):
        runtime_profile.measure(fetch.fetch(), CPU, CASES, browser_path=tmp_path / "none")


def test_a_case_whose_functions_nobody_recorded_is_an_error_for_start_up_and_else_left_out() -> None:
    silent = runtime_profile.Reply("crashed", error="no answer within 3 s")
    with pytest.raises(ParityError, match="did not record what a case entered: no answer within 3 s"):
        runtime_profile._functions(silent)
    heard = runtime_profile.Reply("done", functions=bytes([2]))
    replies = [(CASES[1], silent), (CASES[2], heard)]
    expected = OperatorFunctions("", "Add", 14, ("int64",), frozenset({1}))
    assert runtime_profile._of_operators(replies, frozenset()) == (expected,)
    assert runtime_profile._of_operators(replies, {1}) == (replace(expected, functions=frozenset()),)


@pytest.mark.parametrize(
    ("bits", "numbers"),
    [(b"", []), (b"\0", []), (b"\x01", [0]), (b"\x80\0\x41", [7, 16, 22]), (b"\xff", list(range(8)))],
)
def test_bits_are_functions_the_lowest_first(bits: bytes, numbers: Sequence[int]) -> None:
    assert runtime_profile.of_bits(bits) == frozenset(numbers)


def test_the_command_writes_the_profile_where_build_finds_it(
    stock: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runtime_profile, "suite", lambda progress: CASES)
    monkeypatch.setattr(profiles, "PACKAGED", tmp_path / "none")
    command = ["runtime", "profile", "--runtime", str(stock), "--variant", "wasm", "--json"]
    assert run(command) == 0
    (row,) = json.loads(capsys.readouterr().out)
    found = profiles.find(sha256 := runtime_profile.sha256_bytes((stock / CPU.wasm).read_bytes()))
    assert found is not None
    assert row["path"] == str(own_cache / "profiles" / profiles.file_name(sha256))
    assert (row["variant"], row["functions"], row["start"]) == ("wasm", found.count, len(found.start))
    assert row["bytes"] == Path(row["path"]).stat().st_size
    assert row["operators"] == len({one.op_type for one in found.operators})
