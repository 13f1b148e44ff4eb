import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from edgekit.errors import LimitError, UsageError
from edgekit.facts.survey import Argument
from edgekit.golden.images import ImageOptions, describe, load_image, takes_images
from edgekit.records.tensors import Array

PLAIN = ImageOptions()


def argument(*shape: int | str | None, dtype: str = "float32") -> Argument:
    return Argument("image", f"tensor({dtype})", dtype, shape)


def picture(folder: Path, pixels: Any, name: str = "a <b>.png", **save: Any) -> Path:
    path = folder / name
    Image.fromarray(np.asarray(pixels, np.uint8)).save(path, **save)
    return path


@pytest.fixture
def red_over_blue(tmp_path: Path) -> Path:
    """Two rows and three columns: the upper row red, the lower blue."""
    return picture(tmp_path, [[[255, 0, 0]] * 3, [[0, 0, 255]] * 3])


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 3, "h", "w"), (1, 3, 2, 3)),
        (("n", 3, 4, 6), (1, 3, 4, 6)),
        ((2, 3, None, None), (2, 3, 2, 3)),
        ((1, "h", "w", 3), (1, 2, 3, 3)),
        ((1, "h", "w", 1), (1, 2, 3, 1)),
        ((1, 4, 8, 8), (1, 4, 8, 8)),
        ((3, None, None), (3, 2, 3)),
        ((5, 7, 3), (5, 7, 3)),
    ],
)
def test_layout_channels_and_size_follow_the_shape(
    red_over_blue: Path, shape: tuple[int | str | None, ...], expected: tuple[int, ...]
) -> None:
    array = load_image(red_over_blue, argument(*shape), PLAIN)

    assert (array.shape, array.dtype) == (expected, np.float32)
    assert 0 <= array.min() <= array.max() <= 1


def test_pixels_land_where_they_belong(red_over_blue: Path) -> None:
    nchw = load_image(red_over_blue, argument(1, 3, None, None), PLAIN)
    nhwc = load_image(red_over_blue, argument(1, None, None, 3), PLAIN)

    np.testing.assert_array_equal(nchw[0, :, 0, 0], [1, 0, 0])
    np.testing.assert_array_equal(nchw[0, :, 1, 2], [0, 0, 1])
    np.testing.assert_array_equal(nchw.transpose(0, 2, 3, 1), nhwc)


def test_normalisation_is_pixel_times_scale_minus_mean_over_std(red_over_blue: Path) -> None:
    options = ImageOptions(mean=(0.5, 0.25, 0.0), std=(0.5, 1, 2))
    raw = ImageOptions(scale=1)

    array = load_image(red_over_blue, argument(1, 3, None, None), options)

    np.testing.assert_allclose(array[0, :, 0, 0], [1, -0.25, 0])
    assert load_image(red_over_blue, argument(1, 3, None, None), raw).max() == 255


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_integers_get_the_pixels(red_over_blue: Path, dtype: str) -> None:
    array = load_image(red_over_blue, argument(1, None, None, 3, dtype=dtype), PLAIN)

    assert (array.dtype.name, array.max()) == (dtype, 255)
    with pytest.raises(UsageError, match="have no mean and std"):
        load_image(red_over_blue, argument(1, None, None, 3, dtype=dtype), ImageOptions(mean=(0.5,)))


def test_stated_size_and_layout_fill_what_the_shape_leaves_open(red_over_blue: Path) -> None:
    options = ImageOptions(size=(8, 16), layout="nhwc")

    assert load_image(red_over_blue, argument(None, None, None, None), options).shape == (1, 8, 16, 3)
    assert load_image(red_over_blue, Argument("image", "tensor(float)", "float32", None), options).shape == (
        1,
        8,
        16,
        3,
    )


def test_shape_that_does_not_tell_the_channels_asks_for_the_layout(red_over_blue: Path) -> None:
    for shape in ((None,) * 4, (1, 3, 224, 3), (1, 2, 224, 224)):
        with pytest.raises(UsageError, match="does not tell where its channels are") as caught:
            load_image(red_over_blue, argument(*shape), PLAIN)
        assert "--image-layout" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("wanted", "options", "words"),
    [
        (argument(1, 3, 224, 224), ImageOptions(size=(64, 224)), "image size 64x224 .* wants \\[1, 3, 224, 224\\]"),
        (argument(1, 7, 8, 8), ImageOptions(layout="nchw"), "has 7 channels as nchw"),
        (argument(1, 3, 8, 8), ImageOptions(mean=(1, 2)), "2 numbers are given as image mean, .* has 3 channels"),
        (argument(1, 3, 8, 8), ImageOptions(std=(1, 0, 1)), "std has a 0"),
        (argument(1, 10), PLAIN, "a picture does not fit the input 'image'"),
        (argument(1, 3, 8, 8, dtype="bool"), PLAIN, "a picture does not fit"),
    ],
)
def test_what_does_not_fit_is_refused(red_over_blue: Path, wanted: Argument, options: ImageOptions, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_image(red_over_blue, wanted, options)


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter clockwise
    path = picture(tmp_path, [[[0, 0, 0], [255, 255, 255]]], exif=exif)

    array = load_image(path, argument(1, 3, None, None), PLAIN)

    assert array.shape == (1, 3, 2, 1)
    assert array[0, 0, :, 0].tolist() == [0, 1]


def test_other_kinds_of_pictures_are_converted(tmp_path: Path) -> None:
    deep = tmp_path / "deep.png"
    Image.fromarray(np.array([[0, 65535]], np.uint16)).save(deep)
    jpeg = picture(tmp_path, [[[10, 20, 30]] * 8] * 8, "a.JPG", format="JPEG")
    clear = picture(tmp_path, [[[10, 20, 30, 0]]], "clear.png")
    raw = ImageOptions(scale=1)

    def first(path: Path, channels: int) -> Array:
        return load_image(path, argument(1, channels, None, None), raw)[0, :, 0]

    assert first(deep, 1).tolist() == [[0, 255]]
    np.testing.assert_allclose(first(jpeg, 3)[:, 0], [10, 20, 30], atol=3)
    assert first(clear, 3)[:, 0].tolist() == [10, 20, 30]
    assert first(clear, 4)[:, 0].tolist() == [10, 20, 30, 0]


def png_of(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("size", [(10_000, 10_000), (60_000, 60_000)])
def test_picture_of_too_many_pixels_is_refused_undecoded(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(png_of(*size))

    with pytest.raises(LimitError, match=r"bomb\.png has more than 64,000,000 pixels"):
        load_image(path, argument(1, 3, 8, 8), PLAIN)


@pytest.mark.parametrize("data", [b"", b"GIF89a", png_of(50, 50)[:60], png_of(50, 50)])
def test_broken_picture_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "broken.png"
    path.write_bytes(data)

    with pytest.raises(UsageError, match=r"broken\.png is not a picture that can be read"):
        load_image(path, argument(1, 3, 8, 8), PLAIN)


def test_only_inputs_of_numbers_with_rows_and_columns_take_pictures() -> None:
    assert takes_images(argument(1, 3, 8, 8))
    assert not takes_images(argument(1, 10))
    assert not takes_images(Argument("s", "tensor(string)", "string", (1, 3, 8, 8)))


def test_what_was_done_to_a_picture_is_said(red_over_blue: Path) -> None:
    def said(wanted: Argument, options: ImageOptions) -> str:
        return describe(red_over_blue, load_image(red_over_blue, wanted, options), wanted, options)

    usual = ImageOptions(size=(32, 64), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    expected = "resized to 32×64, nchw, ×1/255, −[0.485, 0.456, 0.406], ÷[0.229, 0.224, 0.225]"
    assert said(argument(1, 3, None, None), usual) == expected
    assert said(argument(None, 8, 16, 3), ImageOptions(scale=2.0)) == "resized to 8×16, nhwc, ×2, −[0], ÷[1]"
    assert said(argument(8, 16, 3, dtype="uint8"), ImageOptions()) == "resized to 8×16, nhwc, pixels as they are"
