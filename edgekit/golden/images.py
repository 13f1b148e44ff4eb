"""Turn a picture into the numbers that an image model takes.

The picture is turned upright (EXIF), converted to grey, RGB or RGBA by the model's channel count (RGB where the model
does not say; transparency is dropped), resized without keeping its proportions (bilinear, antialiased) to the size
that the model fixes or the user states, and normalised: ``(pixel * scale - mean) / std`` per channel, with pixels of 0
to 255. Inputs of integers get the pixels as they are. The same picture is repeated over a fixed batch.
"""

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from edgekit.errors import LimitError, UsageError
from edgekit.facts.survey import Argument
from edgekit.records import array_files
from edgekit.records.tensors import NUMPY_DTYPES, Array

SUFFIXES = (".png", ".jpg", ".jpeg")
Layout = Literal["nchw", "nhwc"]

_MOST_PIXELS = 64_000_000
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_FLOATS = ("float16", "float32", "float64", "bfloat16")
_INTEGERS = ("uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@dataclass(frozen=True)
class ImageOptions:
    """How pictures become inputs.

    ``size``: (height, width); None takes what the model fixes, and the picture's own size where it fixes none.
    ``mean`` and ``std``: one number, or one per channel, in the units of ``pixel * scale``. ``layout``: None reads it
    off the model's shape.
    """

    size: tuple[int, int] | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    scale: float = 1 / 255
    layout: Layout | None = None


@dataclass(frozen=True)
class _Frame:
    """What an input says about pictures; None where it leaves it open."""

    layout: Layout
    batch: int
    channels: int
    height: int | None
    width: int | None


def takes_images(argument: Argument) -> bool:
    """Whether an input has the look of one for pictures: 3 or 4 axes (an unknown rank will do), and numbers."""
    numbers = argument.dtype in _FLOATS or argument.dtype in _INTEGERS
    return numbers and (argument.shape is None or len(argument.shape) in (3, 4))


def load_image(path: Path, argument: Argument, options: ImageOptions) -> Array:
    """Read a picture as the value of ``argument``: its dtype, and its rank (4 where unknown).

    Raises UsageError for a file that is no picture, or a size or normalisation that does not fit the input; LimitError
    for a picture of more than 64 million pixels.
    """
    frame = _frame(path, argument, options)
    height, width = _size(path, argument, frame, options)
    with _opened(path) as picture:
        upright = ImageOps.exif_transpose(_eight_bits(picture)).convert(_MODES[frame.channels])
        natural = (upright.height, upright.width)
        height, width = height or natural[0], width or natural[1]
        if (height, width) != natural:
            upright = upright.resize((width, height), Image.Resampling.BILINEAR)
        pixels = np.asarray(upright).reshape(height, width, frame.channels)
    array = _normalised(path, pixels, argument, options)
    if frame.layout == "nchw":
        array = array.transpose(2, 0, 1)
    if argument.shape is None or len(argument.shape) == 4:
        array = np.repeat(array[np.newaxis], frame.batch, axis=0)
    return np.ascontiguousarray(array)


def describe(path: Path, array: Array, argument: Argument, options: ImageOptions) -> str:
    """Say how a picture became ``array``: size (height × width), layout, and normalisation."""
    layout = _frame(path, argument, options).layout
    height, width = array.shape[-2:] if layout == "nchw" else array.shape[-3:-1]
    size = f"resized to {height}×{width}, {layout}"
    if argument.dtype in _INTEGERS:
        return f"{size}, pixels as they are"
    inverse = 1 / options.scale if options.scale else 0.0
    fraction = abs(inverse) > 1 and abs(inverse - round(inverse)) < 1e-9 * abs(inverse)
    scale = f"1/{round(inverse)}" if fraction else f"{options.scale:g}"
    return f"{size}, ×{scale}, −{_listed(options.mean)}, ÷{_listed(options.std)}"


def _listed(numbers: tuple[float, ...]) -> str:
    return f"[{', '.join(f'{number:g}' for number in numbers)}]"


def _opened(path: Path) -> Image.Image:
    """Open a picture and decode it, after its size is known to be sensible."""
    stream = io.BytesIO(array_files.read_bytes(path))
    try:
        with warnings.catch_warnings():
            # Pillow warns of what it takes for a bomb; the limit below decides. It also warns of odd but readable EXIF.
            warnings.simplefilter("ignore")
            picture = Image.open(stream, formats=("PNG", "JPEG"))
            if picture.width * picture.height > _MOST_PIXELS:
                raise Image.DecompressionBombError
            picture.load()
    except Image.DecompressionBombError as error:
        raise LimitError(
            f"The picture {path} has more than {_MOST_PIXELS:,} pixels.", hint="Make it smaller first."
        ) from error
    except (OSError, ValueError, SyntaxError, EOFError) as error:  # all of these come from broken files
        reason = "" if isinstance(error, UnidentifiedImageError) else f": {error}"
        raise UsageError(
            f"{path} is not a picture that can be read{reason}.", hint="Use a .png or .jpg file."
        ) from error
    return picture


def _eight_bits(picture: Image.Image) -> Image.Image:
    """Scale 16-bit grey down; Pillow would clip it. Keep what says which way is up."""
    if not picture.mode.startswith("I"):
        return picture
    reduced = Image.fromarray((np.asarray(picture).clip(0, 65535) // 257).astype(np.uint8))
    reduced.info = picture.info
    return reduced


def _frame(path: Path, argument: Argument, options: ImageOptions) -> _Frame:
    shape = argument.shape if argument.shape is not None else (None,) * 4
    if not takes_images(argument):
        raise UsageError(
            f"{path}: a picture does not fit the input '{argument.name}', {argument.type} {_shown(argument)}.",
            hint="Pictures fit inputs with a height, a width and channels. Give the values as .npy or .npz.",
        )
    batch = shape[0] if len(shape) == 4 and isinstance(shape[0], int) else 1
    first, rows, last = shape[-3:]
    could_be = [name for name, axis in (("nchw", first), ("nhwc", last)) if axis in _MODES]
    if len(could_be) != 1 and options.layout is None:
        raise UsageError(
            f"{path}: the shape {_shown(argument)} of '{argument.name}' does not tell where its channels are.",
            hint="State the layout with --image-layout nchw or nhwc.",
        )
    layout: Layout = options.layout or ("nchw" if could_be[0] == "nchw" else "nhwc")
    channels, height, width = (first, rows, last) if layout == "nchw" else (last, first, rows)
    if isinstance(channels, int) and channels not in _MODES:
        raise UsageError(
            f"{path}: '{argument.name}' {_shown(argument)} has {channels} channels as {layout}; "
            "pictures have 1, 3 or 4."
        )
    return _Frame(layout, batch, channels if isinstance(channels, int) else 3, _fixed(height), _fixed(width))


def _fixed(dim: int | str | None) -> int | None:
    return dim if isinstance(dim, int) else None


def _size(path: Path, argument: Argument, frame: _Frame, options: ImageOptions) -> tuple[int | None, int | None]:
    if options.size is None:
        return frame.height, frame.width
    height, width = options.size
    if frame.height not in (None, height) or frame.width not in (None, width):
        raise UsageError(
            f"{path}: the image size {height}x{width} (height x width) was asked for, "
            f"but '{argument.name}' wants {_shown(argument)}."
        )
    return height, width


def _normalised(path: Path, pixels: Array, argument: Argument, options: ImageOptions) -> Array:
    dtype = NUMPY_DTYPES[str(argument.dtype)]
    if argument.dtype in _INTEGERS:
        if options.mean != (0.0,) or options.std != (1.0,):
            raise UsageError(f"{path}: '{argument.name}' takes {argument.dtype} pixels, which have no mean and std.")
        return pixels.astype(dtype)
    channels = pixels.shape[2]
    for what, numbers in (("mean", options.mean), ("std", options.std)):
        if len(numbers) not in (1, channels):
            raise UsageError(
                f"{path}: {len(numbers)} numbers are given as image {what}, "
                f"but '{argument.name}' has {channels} channels."
            )
    if 0.0 in options.std:
        raise UsageError("The image std has a 0, by which nothing can be divided.")
    scaled: Array = (pixels.astype(np.float64) * options.scale - np.array(options.mean)) / np.array(options.std)
    return scaled.astype(dtype)


def _shown(argument: Argument) -> str:
    if argument.shape is None:
        return "of unknown rank"
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in argument.shape) + "]"
