"""A real runtime cut to what models need: what each step does, and that node runs the result to the same answers."""

from dataclasses import replace
from pathlib import Path

import models_text
import numpy as np
import ort_in_node
import pytest
from ort_in_node import CPU
from wasm_modules import FIXTURES, refusals, runtime

from edgekit.errors import UsageError
from edgekit.facts import study
from edgekit.files import sha256_bytes
from edgekit.model import io as model_io
from edgekit.runtime import cut, fetch, keep
from edgekit.runtime import profile as profiles
from edgekit.runtime.cut import CutRuntime
from edgekit.runtime.profile import Profile, TextPlace
from edgekit.wasm import sections
from edgekit.wasm.code import bodies
from edgekit.wasm.module import parse

ACOSH = '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Acosh(x) }'
STEPS = ["stock", "functions cut", "kernels left out", "texts blanked", "merged"]


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models_text.write(models_text.LINEAR, tmp_path_factory.mktemp("linear"))


@pytest.fixture(scope="module")
def stock() -> bytes:
    return runtime(CPU.wasm)


@pytest.fixture(scope="module")
def profile() -> Profile:
    found = profiles.find(fetch.fetch().files[CPU.wasm])
    assert found is not None
    return found


@pytest.fixture(scope="module")
def kept(profile: Profile, linear: Path) -> frozenset[int]:
    """What the model needs, as the profile alone tells it."""
    operators = study.study(model_io.load(linear)).facts.operators
    return keep.choose(profile, operators, recorded=None).functions


@pytest.fixture(scope="module")
def small(stock: bytes, profile: Profile, kept: frozenset[int]) -> CutRuntime:
    return cut.cut(stock, profile, kept, fetch.optimizer())


@pytest.fixture(scope="module")
def unmerged(stock: bytes, profile: Profile, kept: frozenset[int]) -> CutRuntime:
    return cut.cut(stock, profile, kept, None)


def feeds(*values: float) -> dict[str, np.ndarray]:
    return {"x": np.array([values], np.float32)}


def test_the_model_gets_the_answers_of_the_stock_runtime(
    stock: bytes, small: CutRuntime, unmerged: CutRuntime, linear: Path, tmp_path: Path
) -> None:
    for given in (feeds(1, 2), feeds(-3, 0.1)):
        expected = ort_in_node.answer(stock, linear, given, tmp_path)
        assert "y" in expected
        assert ort_in_node.answer(small.wasm, linear, given, tmp_path) == expected
        assert ort_in_node.answer(unmerged.wasm, linear, given, tmp_path) == expected


def test_what_the_stock_runtime_refuses_is_refused_in_the_same_words(
    stock: bytes, small: CutRuntime, linear: Path, tmp_path: Path
) -> None:
    expected = ort_in_node.answer(stock, linear, feeds(1, 2, 3), tmp_path)
    assert "invalid dimensions" in expected["error"]
    assert ort_in_node.answer(small.wasm, linear, feeds(1, 2, 3), tmp_path) == expected


def test_the_twin_another_models_operator_is_not_there_any_more(
    stock: bytes, small: CutRuntime, tmp_path: Path
) -> None:
    acosh, given = models_text.write(ACOSH, tmp_path), {"x": np.array([1, 2], np.float32)}
    assert ort_in_node.answer(stock, acosh, given, tmp_path)["y"] == pytest.approx([0, 1.3169579])
    said = ort_in_node.answer(small.wasm, acosh, given, tmp_path)
    assert "unreachable" in said["error"] or "Could not find an implementation for Acosh" in said["error"]


def test_each_step_says_what_it_did(small: CutRuntime, profile: Profile, kept: frozenset[int], stock: bytes) -> None:
    assert [step.name for step in small.steps] == STEPS
    by_name = {step.name: step for step in small.steps}
    assert by_name["stock"].bytes == len(stock)
    assert by_name["stock"].count == profile.count
    assert profile.count - len(kept) <= by_name["functions cut"].count < profile.count
    sizes = [step.bytes for step in small.steps]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[1] < sizes[0] / 2
    assert 1_000 < by_name["kernels left out"].count < 1_429
    assert by_name["texts blanked"].count > 1_000
    assert small.steps[-1].bytes == len(small.wasm)
    assert small.note is None


def test_without_binaryen_the_runtime_is_larger_and_says_so(
    unmerged: CutRuntime, small: CutRuntime, tmp_path: Path
) -> None:
    assert [step.name for step in unmerged.steps] == STEPS[:-1]
    assert len(unmerged.wasm) == unmerged.steps[-1].bytes > len(small.wasm)
    assert unmerged.note is not None and "wasm-opt is not at hand" in unmerged.note
    assert refusals([unmerged.wasm, small.wasm], tmp_path) == [None, None]


def test_binaryen_that_fails_leaves_what_is_there_and_its_words(
    stock: bytes, profile: Profile, kept: frozenset[int], unmerged: CutRuntime, tmp_path: Path
) -> None:
    (tmp_path / "broken").write_text("console.error('out of luck'); process.exit(3);")
    found = cut.cut(stock, profile, kept, tmp_path / "broken")
    assert (found.wasm, found.steps) == (unmerged.wasm, unmerged.steps)
    assert found.note == "wasm-opt failed (exit 3): out of luck"


def test_functions_that_are_kept_and_the_data_that_they_read_stay_as_they_are(
    stock: bytes, unmerged: CutRuntime, profile: Profile, kept: frozenset[int]
) -> None:
    before, after = parse(stock), parse(unmerged.wasm)
    old, new = bodies(before), bodies(after)
    same = {k for k in range(profile.count) if old[k].data == new[k].data}
    # Of what is kept, only functions that describe kernels of other operators change: they describe none now.
    assert profile.kernels is not None
    assert kept - same <= profile.kernels.builders.keys()
    assert len(kept & same) > len(kept) / 2
    read, blanked = set(), 0
    for text in profile.texts:
        if text.functions & kept & same and not text.documentation:
            read.add(text.address)
        else:
            blanked += text.bytes
    data = [(a.data, b.data) for a, b in zip(sections.segments(before), sections.segments(after), strict=True)]
    differing = sum(x != y for a, b in data for x, y in zip(a, b, strict=True))
    assert 0 < differing <= blanked
    assert read


def test_a_function_that_is_not_kept_reports_its_group_and_the_first_miss_stays(
    unmerged: CutRuntime, profile: Profile, kept: frozenset[int]
) -> None:
    gone = [k for k, body in enumerate(bodies(parse(unmerged.wasm))) if body.data.endswith(b"\x1a\0\x0b")]
    assert len(gone) > 10_000
    assert not kept & set(gone)
    new = bodies(parse(unmerged.wasm))
    first, last = gone[0], gone[-1]
    assert profiles.group_of(first) != profiles.group_of(last)
    assert new[first].data != new[last].data
    neighbours = [k for k in gone if profiles.group_of(k) == profiles.group_of(last)]
    assert len({new[k].data for k in neighbours}) == 1


def test_kernels_that_are_created_by_a_kept_function_are_kept_and_documentation_goes_even_so(
    stock: bytes, profile: Profile, kept: frozenset[int]
) -> None:
    assert profile.kernels is not None
    builder, creating = next(item for item in sorted(profile.kernels.builders.items()) if not item[1] & kept)
    text = next(text for text in profile.texts if text.functions & kept and not text.documentation)
    changed = replace(profile, texts=(TextPlace(text.address, text.bytes, text.functions, frozenset(), True),))
    more = cut.cut(stock, changed, kept | creating, None)
    fewer = cut.cut(stock, replace(profile, texts=()), kept, None)
    old, found = bodies(parse(stock)), bodies(parse(more.wasm))
    assert found[builder].data == old[builder].data
    assert bodies(parse(fewer.wasm))[builder].data == old[profile.kernels.void].data
    counts = [{step.name: step.count for step in one.steps} for one in (more, fewer)]
    assert [count["texts blanked"] for count in counts] == [1, 0]
    assert counts[0]["kernels left out"] < counts[1]["kernels left out"]


def test_a_build_without_known_kernels_is_cut_all_the_same(
    stock: bytes, profile: Profile, kept: frozenset[int], linear: Path, tmp_path: Path
) -> None:
    found = cut.cut(stock, replace(profile, kernels=None), kept, None)
    assert [step.name for step in found.steps] == ["stock", "functions cut", "texts blanked"]
    answers = [ort_in_node.answer(wasm, linear, feeds(1, 2), tmp_path) for wasm in (stock, found.wasm)]
    # Start-up asks every builder for its kernel, and those that were not kept are stubs of their own kind.
    assert answers[0]["y"]
    assert answers[1] == answers[0]


def test_a_profile_of_another_file_is_refused(stock: bytes, profile: Profile) -> None:
    with pytest.raises(UsageError, match="is of another build: the wasm file's sha256 is"):
        cut.cut(stock + b"\0\x01\0", profile, profile.start, None)


@pytest.mark.parametrize(
    ("wasm", "keep_", "words"),
    [
        (b"no wasm", frozenset[int](), "cannot be cut"),
        (FIXTURES["sections"], frozenset[int](), "cannot be cut"),
        (FIXTURES["threads"], frozenset({99}), "no function with code index 99"),
    ],
)
def test_what_cannot_be_cut_is_an_error_that_names_the_variant(
    wasm: bytes, keep_: frozenset[int], words: str, profile: Profile
) -> None:
    of_it = replace(profile, wasm_sha256=sha256_bytes(wasm), count=6, kernels=None, texts=())
    with pytest.raises(UsageError, match=r"The runtime of wasm cannot be cut: .*[^.]\.$") as caught:
        cut.cut(wasm, of_it, keep_, None)
    assert words in caught.value.message


def test_the_same_choice_gives_the_same_bytes(
    stock: bytes, profile: Profile, kept: frozenset[int], small: CutRuntime
) -> None:
    assert cut.cut(stock, profile, frozenset(sorted(kept, reverse=True)), fetch.optimizer()) == small
