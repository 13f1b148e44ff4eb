"""The profile of a runtime as a file, where it is found, and the numbers by which stubs report a miss."""

import json
from dataclasses import replace
from pathlib import Path

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_profile import ADD_FLOAT, profile

from edgekit.errors import UsageError
from edgekit.files import sha256_bytes
from edgekit.runtime import fetch, pins
from edgekit.runtime import profile as profiles
from edgekit.runtime.profile import GROUP, ModelFunctions, OperatorFunctions, Profile

NAME = Path("p.json.br")
SETS = st.frozensets(st.integers(0, 999), max_size=30)


def again(one: Profile) -> Profile:
    return profiles.from_bytes(profiles.to_bytes(one), NAME)


def changed(**values: object) -> bytes:
    """The file of the small profile with other values in its JSON."""
    document = json.loads(brotli.decompress(profiles.to_bytes(profile())))
    return bytes(brotli.compress(json.dumps({**document, **values}).encode()))


def test_a_profile_comes_back_as_it_was_written() -> None:
    assert again(profile()) == profile()
    assert again(profile(kernels=None)) == profile(kernels=None)
    nothing = {name: frozenset[int]() for name in ("start", "failures", "threads")}
    empty = profile(**nothing, operators=(), models=(), texts=(), kernels=None)
    assert again(empty) == empty


@given(st.lists(SETS, max_size=8), st.lists(SETS, max_size=4), SETS)
def test_any_sets_of_functions_come_back(
    operators: list[frozenset[int]], models: list[frozenset[int]], start: frozenset[int]
) -> None:
    one = profile(
        start=start,
        operators=tuple(OperatorFunctions("", f"Op{k}", 1, (), some) for k, some in enumerate(operators)),
        models=tuple(ModelFunctions(frozenset({("", f"Op{k}")}), some) for k, some in enumerate(models)),
    )
    assert again(one) == one


def test_functions_that_always_go_together_are_written_once() -> None:
    document = json.loads(brotli.decompress(profiles.to_bytes(profile())))
    clusters = [list(map(sum, [steps[: k + 1] for k in range(len(steps))])) for steps in document["clusters"]]
    written = sorted(k for cluster in clusters for k in cluster)
    assert len(written) == len(set(written))
    assert {40, 41} in map(set, clusters)
    # Ten operators with the same thousand functions cost little more than one.
    many = frozenset(range(1000))
    one = profile(operators=(replace(ADD_FLOAT, functions=many),))
    ten = profile(operators=tuple(replace(ADD_FLOAT, op_type=f"Op{k}", functions=many) for k in range(10)))
    assert len(profiles.to_bytes(ten)) < len(profiles.to_bytes(one)) + 100


def test_the_same_profile_is_the_same_file() -> None:
    assert profiles.to_bytes(profile()) == profiles.to_bytes(again(profile()))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no brotli",
        brotli.compress(b"no JSON"),
        brotli.compress(b"[]"),
        brotli.compress(b"{}"),
        brotli.compress(b'{"format": 2}'),
        profiles.to_bytes(profile())[:-5],
        changed(operators=[["", "Add", 14, ["float32"], [99]]]),
        changed(operators=[["", "Add"]]),
        changed(texts=3),
        changed(start=["a", "b"]),
        changed(kernels={"void": 1}),
    ],
    ids=lambda data: f"{len(data)} bytes",
)
def test_a_damaged_file_is_said_to_be_damaged_with_its_name(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"p\.json\.br is not a runtime profile, or is damaged") as caught:
        profiles.from_bytes(data, NAME)
    assert caught.value.hint is not None and "edgekit runtime profile" in caught.value.hint


def test_a_file_of_another_format_is_told_from_a_damaged_one() -> None:
    with pytest.raises(UsageError, match="is a profile of format 99; this edgekit reads format"):
        profiles.from_bytes(changed(format=99), NAME)


@pytest.mark.parametrize(("function", "number"), [(0, 1), (GROUP - 1, 1), (GROUP, 2), (2 * GROUP, 3)])
def test_a_stub_reports_the_number_of_its_group_which_is_never_0(function: int, number: int) -> None:
    assert profiles.group_of(function) == number
    assert function in profiles.functions_of(number, 10_000)


def test_the_groups_are_all_functions_each_once() -> None:
    count = 5 * GROUP + 3
    groups = [profiles.functions_of(number, count) for number in range(1, 7)]
    assert [k for group in groups for k in group] == list(range(count))
    assert len(profiles.functions_of(6, count)) == 3


@pytest.mark.parametrize("number", [0, -1, 3, 2**32 - 1])
def test_a_number_of_no_group_is_refused(number: int) -> None:
    with pytest.raises(UsageError, match=f"No function of the runtime has the number {number}"):
        profiles.functions_of(number, 2 * GROUP)


def test_a_profile_is_found_in_the_package_first_then_in_the_cache(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "PACKAGED", tmp_path / "packaged")
    sha256 = profile().wasm_sha256
    assert profiles.find(sha256) is None
    assert profiles.cached().is_relative_to(own_cache)
    for folder, version in ((profiles.cached(), "cached"), (tmp_path / "packaged", "packaged")):
        folder.mkdir(parents=True)
        (folder / profiles.file_name(sha256)).write_bytes(profiles.to_bytes(profile(version=version)))
        found = profiles.find(sha256)
        assert found is not None and found.version == version
    assert profiles.find("cd" * 32) is None


def test_a_damaged_profile_in_the_cache_is_an_error_that_names_the_file(own_cache: Path) -> None:
    path = profiles.cached() / profiles.file_name("ab" * 32)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"?")
    with pytest.raises(UsageError, match="damaged") as caught:
        profiles.find("ab" * 32)
    assert str(path) in caught.value.message


def test_a_profile_belongs_to_one_file() -> None:
    profiles.check_belongs(profile(wasm_sha256=sha256_bytes(b"this")), b"this")
    with pytest.raises(UsageError, match=r"onnxruntime-web 0\.0\.1, wasm is of another build"):
        profiles.check_belongs(profile(), b"this")


@pytest.mark.parametrize("variant", pins.load().variants, ids=lambda variant: variant.id)
def test_edgekit_comes_with_the_profile_of_each_pinned_build(variant: pins.Variant) -> None:
    found = profiles.find(fetch.fetch().files[variant.wasm])
    assert found is not None, "measure it with 'edgekit runtime profile'"
    assert (found.variant, found.version) == (variant.id, pins.load().version)
    # Beside another execution provider none is left out: its nodes would go elsewhere, and nobody would notice.
    assert (found.kernels is None) == bool(variant.needs)
    assert found.kernels is None or len(found.kernels.builders) > 1_300
    assert len({(one.domain, one.op_type) for one in found.operators}) > 200
    assert max(found.start | found.threads | found.failures) < found.count
    assert 2_000 < len(found.start) < found.count / 3
