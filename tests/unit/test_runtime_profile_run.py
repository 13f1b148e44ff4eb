"""A profile is measured: a handful of cases on a real recording runtime, in a real Chromium."""

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from edgekit.files import sha256_bytes
from edgekit.model import io as model_io
from edgekit.progress import silent
from edgekit.records.tensors import value_of
from edgekit.runtime import cut, fetch, keep, pins
from edgekit.runtime import profile as profiles
from edgekit.runtime.profile import OperatorFunctions, Profile
from edgekit.runtime.recording import of_bits, recording_dist
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


# No build has kernels for these of double; what three refused operators enter is what any refusal enters.
REFUSED = tuple(unary(name, 9, "double") for name in ("Acosh", "Asinh", "Atanh"))
CASES = (
    unary("Identity", 16),
    case("add", "y = Add(x, x)", Operator("", "Add", 14, ("float32",))),
    case("add of int64", "y = Add(x, x)", Operator("", "Add", 14, ("int64",)), "int64"),
    unary("Acosh", 9),
    *REFUSED,
    case("two nodes", "a = Exp(x) y = Add(a, x)", None),
)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command says that it wrote to a cache of its own: measuring takes half a minute, so once for all."""
    stock, said = fetch.fetch().folder, io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(said):
        patched.setattr(runtime_profile, "suite", lambda progress: CASES)
        patched.setenv("EDGEKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        assert run(["runtime", "profile", "--runtime", str(stock), "--variant", "wasm", "--json"]) == 0
    (row,) = json.loads(said.getvalue())
    assert isinstance(row, dict)
    return row


@pytest.fixture(scope="session")
def measured(written: dict[str, Any]) -> Profile:
    path = Path(written["path"])
    return profiles.from_bytes(path.read_bytes(), path)


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


def test_what_many_refused_sessions_enter_is_what_any_session_needs(measured: Profile) -> None:
    assert measured.failures
    assert not measured.failures & measured.start


def test_what_a_refused_session_enters_is_kept_for_its_operator(measured: Profile) -> None:
    refused = [one for one in measured.operators if one.dtypes == ("float64",)]
    assert refused
    assert all(one.functions & measured.failures for one in refused)


def test_the_twin_too_few_operators_that_fail_say_nothing(measured: Profile) -> None:
    replies = [(each, runtime_profile.Reply("refused", functions=bytes([0, 1]))) for each in REFUSED]
    assert runtime_profile._failures(replies) == {8}
    assert runtime_profile._failures(replies[:2]) == frozenset()
    assert runtime_profile._failures([*replies[:2], replies[0]]) == frozenset()


def test_threads_enter_more_and_may_enter_what_they_did_not(measured: Profile) -> None:
    assert len(measured.threads) > 10
    assert max(measured.threads) < measured.count


@pytest.mark.sweep
def test_descriptions_for_people_are_told_from_texts_that_code_reads(measured: Profile) -> None:
    found = {text.address: text for text in texts.texts(parse((fetch.fetch().folder / CPU.wasm).read_bytes()))}
    described = [found[text.address] for text in measured.texts if text.documentation]
    assert len(described) > 200
    assert any(b"element-wise" in text.data for text in described)
    assert not any(text.shared for text in described)
    assert not any(text.data.startswith((b"tensor(", b"seq(", b"{")) for text in described)
    assert {text.address for text in measured.texts} == found.keys()


@pytest.mark.sweep
def test_after_a_refusal_on_webgpu_programs_are_kept_and_what_makes_them_is_seen_all_the_same() -> None:
    (variant,) = pins.load().chosen(["jspi"], "test")
    recorder, recording = recording_dist(fetch.fetch(), variant)
    unknown, relu = case("not to be created", "y = NoSuchOperator(x)", None), unary("Relu", 14)
    two = case("a program that was made before", "a = Relu(x) y = Abs(a)", None)
    (one, *_) = runtime_profile._runs(
        [CASES[0], unknown, relu, two], variant, recorder, recording, browser_path=None, progress=silent
    )
    entered = [(given.name, of_bits(reply.functions)) for given, reply in one.replies if reply.functions is not None]
    of_relu = next(functions for name, functions in entered if name == relu.name)
    after_refusal, alone, *_ = (functions for name, functions in entered if name == two.name)
    made = (of_relu - after_refusal) & alone
    assert made, "the device was let go: then one replay is enough"


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
    written: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(written["path"])
    monkeypatch.setattr(profiles, "PACKAGED", tmp_path / "none")
    monkeypatch.setenv("EDGEKIT_CACHE", str(path.parent.parent))
    sha256 = sha256_bytes((fetch.fetch().folder / CPU.wasm).read_bytes())
    found = profiles.find(sha256)
    assert found is not None
    assert path == profiles.cached() / profiles.file_name(sha256)
    assert (written["variant"], written["functions"], written["start"]) == ("wasm", found.count, len(found.start))
    assert written["bytes"] == path.stat().st_size
    assert written["operators"] == len({one.op_type for one in found.operators})
