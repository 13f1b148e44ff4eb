"""Values for a model's inputs: random, smooth, picture-like and extreme ones, the same for the same seed.

Noise alone does not do. PP-OCRv4's text detector answers noise, gradients and checkerboards with an output that is
zero everywhere (largest value 2e-5 at 96 × 96), and strokes on a light ground with scores up to 1.0, 29 % of them
above 0.3; from 64 × 64 pixels upwards. So inputs that look like pictures also get strokes, and long axes get tones.
"""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from edgekit.errors import ModelError
from edgekit.facts.survey import Argument
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value

Kind = Literal["normal", "uniform", "zeros", "ones", "negative", "large", "tiny", "smooth", "strokes"]
Reals = npt.NDArray[np.float64]

FLOATS = ("float16", "float32", "float64", "bfloat16")
# Below the largest finite value, so that no input becomes an infinity by rounding.
_LARGEST = {"float16": 65504.0, "bfloat16": 3.3e38, "float32": 3.4e38}

SCALES: dict[Kind, float] = {"large": 1000.0, "tiny": 1e-4}

_WORDS = ("", "a", "edge", "Zürich", "two words", "0", "-1.5", "naïve café", "日本語", "<b>&amp;</b>", "e\u0301", "😀")
_CHANNELS = (1, 2, 3, 4)
_PICTURE_SIDE = 16
_MOST_AXES = 64  # numpy's limit
_MOST_ELEMENTS = 1 << 40


@dataclass(frozen=True)
class Domain:
    """What the graph takes for one input.

    ``low`` and ``high`` (both inclusive) bound an integer input. ``settings`` are the only values that make sense for
    a scalar (a sampling rate that the graph compares with 16000); a case takes one of them, whatever its kind.
    ``whole``: a float input of which the graph makes an index (Keras text models do), so it is bounded too.
    ``signed``: negative values are taken too. ``words``: the texts that the graph knows, where any.
    """

    low: int = 0
    high: int = 127
    settings: tuple[float, ...] = ()
    whole: bool = False
    signed: bool = False
    words: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether values mean what they are, so that the next float is another meaning and not a small error."""
        return self.whole or bool(self.settings)


@dataclass(frozen=True)
class Recipe:
    """How the values of a case come about. ``scale`` multiplies floats; ``setting`` picks from ``Domain.settings``."""

    kind: Kind
    seed: int
    scale: float = 1.0
    setting: int = 0

    def describe(self) -> str:
        scale = "" if self.scale == 1.0 else f" × {self.scale:g}"
        seed = "" if self.kind in ("zeros", "ones") else f", seed {self.seed}"
        return f"{self.kind}{scale}{seed}"


def recipe(kind: Kind, seed: int, *, scale: float | None = None, setting: int = 0) -> Recipe:
    """Make a recipe with the usual scale of its kind."""
    return Recipe(kind, seed, SCALES.get(kind, 1.0) if scale is None else scale, setting)


def whole_range(dtype: str) -> Domain | None:
    """Return the domain of an 8-bit integer, whose every value a model must take; None for other dtypes."""
    if dtype not in ("int8", "uint8"):
        return None
    limits = np.iinfo(dtype)
    return Domain(int(limits.min), int(limits.max))


def looks_like_picture(shape: Sequence[int]) -> bool:
    """Whether a shape is one of pictures: NCHW, NHWC, CHW or HWC with at most 4 channels, sides of 16 or more."""
    return _picture_axes(shape) is not None


def fill(argument: Argument, shape: Sequence[int], how: Recipe, domain: Domain) -> Value:
    """Make the value of one input, of the argument's dtype and of ``shape``.

    Raises ModelError for an input that is not a tensor, of a dtype that edgekit cannot make, or of an impossible shape.
    """
    if len(shape) > _MOST_AXES or math.prod(max(1, size) for size in shape) > _MOST_ELEMENTS:
        # numpy refuses an array of no elements too, when the other axes are too long
        raise ModelError(
            f"The input '{argument.name}' has a shape that no tensor can have: {list(shape[:8])}.",
            hint="Export the model with the sizes that it is used with.",
        )
    rng = np.random.default_rng([how.seed, zlib.crc32(f"{how.kind}/{argument.name}".encode())])
    dtype, shape = argument.dtype, tuple(shape)
    if dtype == "string":
        return Value(argument.name, "string", _strings(rng, shape, how, domain.words or _WORDS))
    if dtype is None or dtype not in NUMPY_DTYPES:
        raise ModelError(
            f"The input '{argument.name}' is {argument.type}: edgekit makes no values of that type.",
            hint="Export the model with plain tensors as inputs.",
        )
    if domain.settings:
        setting = domain.settings[how.setting % len(domain.settings)]
        return Value(argument.name, dtype, np.full(shape, setting, dtype=NUMPY_DTYPES[dtype]))
    if dtype == "bool":
        return Value(argument.name, dtype, _booleans(rng, shape, how))
    if dtype in FLOATS and not domain.whole:
        return Value(argument.name, dtype, _rounded(_reals(rng, shape, how), dtype))
    return Value(argument.name, dtype, _integers(rng, shape, how, domain).astype(NUMPY_DTYPES[dtype]))


def one_ulp(array: Array, rng: np.random.Generator) -> Array:
    """Return a float array with every element moved by one unit in the last place, up or down at random.

    Zeros stay: their neighbour is no rounding error of anything (its logarithm is -103 and not -infinity). Infinities
    and NaN stay too.
    """
    up = rng.random(array.shape) < 0.5
    if array.dtype == NUMPY_DTYPES["bfloat16"]:
        bits = array.view(np.uint16).astype(np.int32)
        moved = (bits + np.where(up, 1, -1)).astype(np.uint16).view(ml_dtypes.bfloat16)
    else:
        moved = np.nextafter(array, np.where(up, np.inf, -np.inf).astype(array.dtype))
    with np.errstate(invalid="ignore"):  # bfloat16's NaN
        stays = (array == 0) | ~np.isfinite(array) | ~np.isfinite(moved)
    return np.asarray(np.where(stays, array, moved), dtype=array.dtype)


def move_one_ulp(value: Value, seed: int) -> Value:
    """Move a float value by one unit in the last place, see ``one_ulp``; values of other dtypes stay as they are."""
    if value.array is None or value.dtype not in FLOATS:
        return value
    return replace(value, array=one_ulp(value.array, np.random.default_rng([seed, zlib.crc32(value.name.encode())])))


def _rounded(reals: Reals, dtype: str) -> Array:
    """Round to ``dtype`` without passing its largest finite value: an infinite input proves nothing."""
    limit = _LARGEST.get(dtype, np.inf)
    return np.clip(reals, -limit, limit).astype(NUMPY_DTYPES[dtype])


def _reals(rng: np.random.Generator, shape: tuple[int, ...], how: Recipe) -> Reals:
    makers: dict[Kind, Callable[[], Reals]] = {
        "uniform": lambda: rng.random(shape),
        "zeros": lambda: np.zeros(shape),
        "ones": lambda: np.ones(shape),
        "negative": lambda: -np.abs(rng.standard_normal(shape)),
        "smooth": lambda: _smooth(rng, shape),
        "strokes": lambda: _strokes(rng, shape),
    }
    return np.asarray(makers.get(how.kind, lambda: rng.standard_normal(shape))() * how.scale, dtype=np.float64)


def _integers(rng: np.random.Generator, shape: tuple[int, ...], how: Recipe, domain: Domain) -> Array:
    """Draw from the domain; "large" and "tiny" keep to its ends, pictures fill it, "negative" mirrors it below zero."""
    low, high = domain.low, domain.high
    if how.kind in ("smooth", "strokes") and looks_like_picture(shape):
        unit = (np.clip(_reals(rng, shape, replace(how, scale=1.0)), -1, 1) + 1) / 2
        drawn = np.rint(low + unit * (high - low))
    elif how.kind in ("zeros", "ones"):
        drawn = np.full(shape, min(max(int(how.kind == "ones"), low), high))
    elif how.kind == "smooth":
        drawn = low + np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) % (high - low + 1)
    else:
        quarter = (high - low) // 4
        if how.kind == "large":
            low = high - quarter
        elif how.kind == "tiny":
            high = low + quarter
        drawn = rng.integers(low, high, size=shape, endpoint=True)
        if drawn.size > 1 or how.kind == "large":  # the last row of a table is worth reading
            drawn.flat[-1:] = high
        if how.kind == "negative" and domain.low >= 0 and domain.signed:
            drawn = -drawn
    return np.asarray(drawn)


def _booleans(rng: np.random.Generator, shape: tuple[int, ...], how: Recipe) -> Array:
    if how.kind in ("zeros", "ones"):
        return np.full(shape, how.kind == "ones")
    return np.asarray(rng.random(shape) < 0.5)


def _strings(rng: np.random.Generator, shape: tuple[int, ...], how: Recipe, known: Sequence[str]) -> Array:
    """Draw from the words; "zeros" is the empty text, which few graphs know, and "ones" one word everywhere."""
    picked = rng.integers(0, len(known), size=shape)
    constant = {"zeros": "", "ones": "1" if known is _WORDS else known[0]}.get(how.kind)
    texts = [known[int(i)] if constant is None else constant for i in np.ravel(picked)]
    return np.array(texts, dtype=object).reshape(shape)


def _picture_axes(shape: Sequence[int]) -> tuple[int, int] | None:
    """Return the axes of height and width, or None for what does not look like a picture."""
    rank = len(shape)
    if rank not in (3, 4):
        return None
    first, last = rank - 3, rank - 1
    if shape[first] in _CHANNELS and min(shape[first + 1 :]) >= _PICTURE_SIDE:
        return first + 1, first + 2
    if shape[last] in _CHANNELS and min(shape[first : first + 2]) >= _PICTURE_SIDE:
        return first, first + 1
    return None


def _smooth(rng: np.random.Generator, shape: tuple[int, ...]) -> Reals:
    """Waves in [-1, 1]: along both axes of a picture, else a rising tone with a harmonic along the longest axis."""
    if not shape or 0 in shape:
        return rng.standard_normal(shape)
    axes = _picture_axes(shape) or (int(np.argmax(shape)),)
    grids = np.meshgrid(*(np.linspace(0, 1, shape[axis]) for axis in axes), indexing="ij")
    others = [n for axis, n in enumerate(shape) if axis not in axes]
    planes = []
    for _ in range(int(np.prod(others))):
        phase = sum(2 * np.pi * rng.uniform(1, 8) * grid * (1 + grid) for grid in grids) + rng.uniform(0, 2 * np.pi)
        planes.append(rng.uniform(0.3, 0.7) * np.sin(phase) + 0.3 * np.sin(3 * phase))
    return _placed(np.stack(planes), shape, axes)


def _strokes(rng: np.random.Generator, shape: tuple[int, ...]) -> Reals:
    """Rows of dark strokes on a light ground, in [-1, 1], the same in every channel, as a scanned page has them."""
    axes = _picture_axes(shape)
    if axes is None:
        return _smooth(rng, shape)
    height, width = shape[axes[0]], shape[axes[1]]
    others = [n for axis, n in enumerate(shape) if axis not in axes]
    batch = others[0] if len(others) == 2 else 1
    pages = np.stack([_page(rng, height, width) for _ in range(batch)])
    channels = int(np.prod(others)) // batch
    repeated = np.repeat(pages, channels, axis=0)
    return _placed(repeated, shape, axes)


def _page(rng: np.random.Generator, height: int, width: int) -> Reals:
    page = np.ones((height, width))
    top = 4
    while top < height - 8:
        glyph = int(rng.integers(8, max(9, min(24, height - top) + 1)))
        left, wide = 4, max(4, glyph // 2)
        while left < width - wide:
            if rng.random() < 0.85:
                for _ in range(3):
                    row, column = top + int(rng.integers(0, glyph - 1)), left + int(rng.integers(0, wide - 1))
                    if rng.random() < 0.5:
                        page[top : top + glyph, column : column + 2] = -1
                    else:
                        page[row : row + 2, left : left + wide] = -1
            left += wide + 2
        top += glyph + 6
    return page


def _placed(planes: Reals, shape: tuple[int, ...], axes: Sequence[int]) -> Reals:
    """Bring planes, stacked along the first axis, to ``shape``, their own axes at ``axes``."""
    others = [axis for axis in range(len(shape)) if axis not in axes]
    stacked = planes.reshape([shape[axis] for axis in others] + [shape[axis] for axis in axes])
    return np.ascontiguousarray(np.transpose(stacked, np.argsort([*others, *axes])))
