"""Values for a model's inputs."""

import numpy as np
import pytest

from edgekit.errors import ModelError
from edgekit.facts.survey import Argument
from edgekit.golden.inputs import Domain, fill, looks_like_picture, move_one_ulp, recipe, whole_range
from edgekit.records.tensors import NUMPY_DTYPES, Value, same_bits

KINDS = ("normal", "uniform", "zeros", "ones", "negative", "large", "tiny", "smooth", "strokes")
NOT_FLOATS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def argument(dtype: str | None, name: str = "x") -> Argument:
    return Argument(name, f"tensor({dtype})", dtype, None)


def numbers(kind: str, dtype: str = "float32", shape: tuple[int, ...] = (3, 40), **domain: object) -> np.ndarray:
    array = fill(argument(dtype), shape, recipe(kind, 5), Domain(**domain)).array
    assert array is not None
    return array


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [*NUMPY_DTYPES, "string"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (4,), (1, 3, 32, 32), (2, 32, 32, 3)])
def test_every_kind_gives_every_dtype_and_shape_and_the_same_again(
    kind: str, dtype: str, shape: tuple[int, ...]
) -> None:
    domain = whole_range(dtype) or Domain()
    first, again = (fill(argument(dtype), shape, recipe(kind, 1), domain) for _ in range(2))
    assert (first.dtype, first.shape) == (dtype, shape)
    assert same_bits(first, again)
    if dtype not in ("string", *NOT_FLOATS):
        assert np.isfinite(np.asarray(first.array, dtype=np.float64)).all()


def test_another_seed_and_another_input_give_other_values() -> None:
    x = fill(argument("float32"), (9,), recipe("normal", 1), Domain())
    assert not same_bits(x, fill(argument("float32"), (9,), recipe("normal", 2), Domain()))
    other = fill(argument("float32", "other"), (9,), recipe("normal", 1), Domain())
    assert x.array is not None
    assert other.array is not None
    assert not np.array_equal(x.array, other.array)


def test_floats_are_of_the_magnitude_that_their_kind_says() -> None:
    assert 0.5 < np.abs(numbers("normal")).max() < 5
    assert np.abs(numbers("large")).max() > 500
    assert 0 < np.abs(numbers("tiny")).max() < 1e-3
    assert numbers("negative").max() < 0
    assert numbers("uniform").min() >= 0
    assert not numbers("zeros").any()
    assert (numbers("ones") == 1).all()


def test_large_float16_stays_finite() -> None:
    how = recipe("large", 0, scale=1e6)
    assert np.isfinite(np.asarray(fill(argument("float16"), (100,), how, Domain()).array)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_bounded_values_stay_in_their_domain(kind: str, dtype: str) -> None:
    values = numbers(kind, dtype, low=1, high=9, whole=True)
    assert values.min() >= 1
    assert values.max() <= 9
    assert np.array_equal(values, np.rint(values))


def test_random_integers_reach_both_ends_of_their_domain() -> None:
    values = numbers("normal", "int64", (500,), low=0, high=9)
    assert (values.min(), values.max()) == (0, 9)


def test_negative_integers_only_where_they_are_taken() -> None:
    assert numbers("negative", "int64", low=0, high=9, signed=True).min() < 0
    assert numbers("negative", "int64", low=0, high=9).min() >= 0


def test_a_setting_is_the_value_whatever_the_kind() -> None:
    domain = Domain(settings=(16000.0, 8000.0))
    for kind in KINDS:
        value = fill(argument("int64"), (), recipe(kind, 3, setting=1), domain)
        assert value.array is not None
        assert value.array == 8000
        assert value.array.shape == ()


def test_strokes_are_dark_on_light_and_alike_in_every_channel() -> None:
    page = numbers("strokes", shape=(2, 3, 64, 96))
    assert set(np.unique(page)) == {-1, 1}
    assert np.array_equal(page[:, 0], page[:, 2])
    assert not np.array_equal(page[0], page[1])
    assert np.array_equal(np.transpose(page, (0, 2, 3, 1)).shape, numbers("strokes", shape=(2, 64, 96, 3)).shape)


@pytest.mark.parametrize("shape", [(1, 3, 32, 48), (1, 32, 48, 3), (3, 32, 48), (32, 48, 1)])
def test_pictures_are_known_by_their_shape(shape: tuple[int, ...]) -> None:
    assert looks_like_picture(shape)


@pytest.mark.parametrize("shape", [(), (16, 8), (1, 3, 8, 8), (1, 12, 64, 64), (5, 16, 200), (1, 1, 3, 32, 32)])
def test_other_shapes_are_no_pictures(shape: tuple[int, ...]) -> None:
    assert not looks_like_picture(shape)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_one_ulp_moves_each_number_to_a_neighbour_and_leaves_zero_and_infinity(dtype: str) -> None:
    array = np.array([1.5, -2.25, 3e-3, 0.0, np.inf, np.nan, -7.0] * 30).astype(NUMPY_DTYPES[dtype])
    moved = move_one_ulp(Value("x", dtype, array), 0).array
    assert moved is not None
    assert moved.dtype == array.dtype
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[array.dtype.itemsize]
    steps = moved.view(bits).astype(np.int64) - array.view(bits).astype(np.int64)
    stays = (array == 0) | ~np.isfinite(array.astype(np.float64))
    assert not steps[stays].any()
    assert set(steps[~stays]) == {-1, 1}


def test_one_ulp_leaves_integers_alone() -> None:
    value = Value("x", "int64", np.arange(5))
    assert move_one_ulp(value, 0) is value


def test_what_is_no_tensor_is_refused_with_its_type() -> None:
    sequence = Argument("x", "seq(tensor(float))", None, None)
    with pytest.raises(ModelError, match=r"'x' is seq\(tensor\(float\)\)"):
        fill(sequence, (), recipe("normal", 0), Domain())
