from pathlib import Path

import pytest
from wasm_modules import FIXTURES, MAGIC, RUNTIMES, refusals, runtime, section

from edgekit.wasm import sections
from edgekit.wasm.binary import EditError, WasmError
from edgekit.wasm.layout import segment_ranges
from edgekit.wasm.module import Module, parse
from edgekit.wasm.texts import Text, blank, texts

FIRST, INSIDE, WIDE = 0, 1, 2


@pytest.fixture
def module() -> Module:
    return parse(FIXTURES["texts"])


@pytest.fixture
def found(module: Module) -> dict[bytes, Text]:
    return {text.data: text for text in texts(module)}


def at(module: Module, address: int, size: int) -> bytes:
    """What the data have at an address."""
    for number, addresses in segment_ranges(module).items():
        if address in addresses:
            start = address - addresses.start
            return sections.segments(module)[number].data[start : start + size]
    raise AssertionError(f"no data at {address}")


def test_a_text_is_found_by_any_constant_that_is_its_address(found: dict[bytes, Text]) -> None:
    assert {data: text.functions for data, text in found.items()} == {
        b"by its first byte": {FIRST, INSIDE},
        b"of the scale": {FIRST, INSIDE},
        b"first row": {FIRST},
        b"by one half": {WIDE},
        b"by the other half": {WIDE},
        b"by a vector": {WIDE},
        b"by an offset": {WIDE},
        b"by an odd pointer": {FIRST},
    }
    assert [text.address for text in found.values()] == sorted(text.address for text in found.values())


def test_where_a_text_lies_is_told(module: Module, found: dict[bytes, Text]) -> None:
    for data, text in found.items():
        assert at(module, text.address - 1, len(data) + 2) == b"\0" + data + b"\0"


def test_a_text_whose_end_or_closing_nul_is_referred_to_is_shared(found: dict[bytes, Text]) -> None:
    assert {data for data, text in found.items() if text.shared} == {b"of the scale", b"by its first byte"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"only by its end", "no function names its first byte"),
        (b"by a pointer", "an aligned word of the data points to it"),
        (b"second row", "it is reached from the row before"),
        (b"abc", "it is too short"),
        (b"cut in two", "no NUL closes it in its segment"),
        (b" segments", "no NUL opens it in its segment"),
        (b"by nobody at all", "nobody refers to it"),
    ],
)
def test_what_may_be_reached_in_another_way_is_left_alone(text: bytes, why: str, found: dict[bytes, Text]) -> None:
    assert text in FIXTURES["texts"]
    assert text not in found, why


def test_blanked_texts_are_zeros_and_the_rest_stays(module: Module, found: dict[bytes, Text], tmp_path: Path) -> None:
    gone = [found[b"first row"], found[b"by a vector"]]
    made = blank(module, [(text.address, len(text.data)) for text in gone])
    assert refusals([made.to_bytes()], tmp_path) == [None]
    expected = FIXTURES["texts"]
    for text in gone:
        expected = expected.replace(text.data, bytes(len(text.data)))
        assert at(made, text.address, len(text.data)) == bytes(len(text.data))
    assert made.to_bytes() == expected
    assert blank(module, []).to_bytes() == FIXTURES["texts"]


@pytest.mark.parametrize("place", [(1000, 4), (1020, 8), (1040, 8), (1376, 12), (1500, 4), (70_000, 1)])
def test_a_place_that_is_not_inside_one_segment_is_refused(place: tuple[int, int], module: Module) -> None:
    with pytest.raises(EditError, match=f"The addresses {place[0]} to {sum(place)} are not inside one data segment"):
        blank(module, [place])


def test_a_module_without_data_has_no_texts_and_nothing_to_blank() -> None:
    empty = parse(MAGIC)
    assert texts(empty) == ()
    with pytest.raises(EditError, match="not inside one data segment"):
        blank(empty, [(0, 1)])


def test_data_at_a_place_that_is_not_constant_are_refused_and_so_are_unknown_instructions() -> None:
    memory = section(5, "01 00 01")
    passive = parse(MAGIC + memory + section(12, "01") + section(11, "01 01 01 61"))
    for act in (texts, lambda module: blank(module, [(0, 1)])):
        with pytest.raises(EditError, match="passive data segment 0"):
            act(passive)  # type: ignore[operator]
    with pytest.raises(WasmError):
        texts(parse(MAGIC + section(1, "01 60 00 00") + section(3, "01 00") + section(10, "01 03 00 ff 0b")))


@pytest.mark.sweep
def test_the_real_runtime_has_thousands_of_texts_and_is_valid_without_them(tmp_path: Path) -> None:
    (name,) = [name for name in RUNTIMES if name == "ort-wasm-simd-threaded.wasm"]
    stock = parse(runtime(name))
    found = texts(stock)
    assert len(found) > 5_000
    assert sum(len(text.data) for text in found) > 200_000
    assert all(at(stock, text.address, len(text.data)) == text.data for text in found[::50])
    # The operator's description is a text of its own; a name of a parameter lies in the end of one.
    assert any(text.shared and text.data.endswith(b"zero_point") for text in found)
    made = blank(stock, [(text.address, len(text.data)) for text in found])
    assert refusals([made.to_bytes()], tmp_path) == [None]
    assert len(made.to_bytes()) == len(stock.to_bytes())
