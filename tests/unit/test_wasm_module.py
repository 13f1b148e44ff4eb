import pytest
from hypothesis import given
from hypothesis import strategies as st
from wasm_modules import RUNTIMES, runtime, section, unsigned

from edgekit.wasm.binary import Reader, WasmError
from edgekit.wasm.module import MAGIC, SectionId, parse
from edgekit.wasm.sections import Export, Import, Kind, exports, imports
from edgekit.wasm.types import GlobalType, Limits, TableType, ValueType

# env.f: function, env.t: funcref table, env.m: shared memory 1..2, env.g: mutable i32; exports f and "é" (memory 0).
TYPES = "01 60 00 00"
IMPORTS = "04 03656e76 0166 00 00  03656e76 0174 01 70 00 01  03656e76 016d 02 03 01 02  03656e76 0167 03 7f 01"
EXPORTS = "02 0166 00 00  02c3a9 02 00"
TINY = MAGIC + section(1, TYPES) + section(0, "04 6e616d65 ff") + section(2, IMPORTS) + section(7, EXPORTS)


def test_imports_and_exports_are_read() -> None:
    module = parse(TINY)
    assert [section.id for section in module.sections] == [1, 0, 2, 7]
    assert imports(module) == (
        Import("env", "f", Kind.FUNCTION, 0),
        Import("env", "t", Kind.TABLE, TableType(ValueType("ref", True, "func"), Limits(1, None, False, False))),
        Import("env", "m", Kind.MEMORY, Limits(1, 2, True, False)),
        Import("env", "g", Kind.GLOBAL, GlobalType(ValueType("i32"), True)),
    )
    assert exports(module) == (Export("f", Kind.FUNCTION, 0), Export("é", Kind.MEMORY, 0))
    found = module.section(SectionId.EXPORT)
    assert found is not None
    assert TINY[found.offset : found.offset + len(found.payload)] == found.payload


def test_a_module_without_sections_has_neither() -> None:
    assert imports(parse(MAGIC)) == ()
    assert exports(parse(MAGIC)) == ()
    assert parse(MAGIC).to_bytes() == MAGIC


@pytest.mark.parametrize(
    "entry",
    [
        "00 02 03 04 05",
        "04 00 00",
        "01 64 70 04 02",
        "01 63 05 07 01 02",
        "02 05 80 02 80 80 04",
        "03 6f 00",
        "03 7b 01",
    ],
    ids=[
        "function with more bytes",
        "tag",
        "ref table 64",
        "typed ref table",
        "memory 64",
        "externref global",
        "v128 global",
    ],
)
def test_newer_kinds_of_imports_are_read_or_refused_but_never_guessed(entry: str) -> None:
    body = b"\1\0\0" + bytes.fromhex(entry)
    module = parse(MAGIC + b"\2" + unsigned(len(body)) + body)
    if entry.startswith("00"):
        with pytest.raises(WasmError, match="longer than its entries"):
            imports(module)
    else:
        assert len(imports(module)) == 1


def test_parse_then_write_is_identical_with_padded_sizes() -> None:
    padded = MAGIC + section(1, TYPES, padding=3) + section(7, EXPORTS, padding=2)
    assert parse(padded).to_bytes() == padded
    assert exports(parse(padded)) == exports(parse(TINY))


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 3)), max_size=6))
def test_custom_sections_of_any_bytes_survive(contents: list[tuple[bytes, int]]) -> None:
    data = MAGIC
    for content, padding in contents:
        payload = b"\1x" + content
        data += b"\0" + unsigned(len(payload), padding) + payload
    assert parse(data).to_bytes() == data


@given(st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_unsigned_numbers_are_read_whole(value: int, padding: int) -> None:
    data = unsigned(value, padding)
    reader = Reader(data)
    if len(data) <= 5:
        assert reader.unsigned() == value
        assert reader.at_end
    else:
        with pytest.raises(WasmError, match="too many bytes"):
            reader.unsigned()


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("00", 0),
        ("7f", -1),
        ("3f", 63),
        ("40", -64),
        ("c0 00", 64),
        ("bf 7f", -65),
        ("ff ff ff ff 0f", 2**32 - 1),
        ("80 80 80 80 70", -(2**32)),
    ],
)
def test_signed_numbers_are_read_whole(data: str, value: int) -> None:
    assert Reader(bytes.fromhex(data)).signed(33) == value


@pytest.mark.parametrize("data", ["80 80 80 80 10", "ff ff ff ff 6f", "80 80 80 80 80 00"])
def test_signed_numbers_out_of_range_are_refused(data: str) -> None:
    with pytest.raises(WasmError):
        Reader(bytes.fromhex(data)).signed(33)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_module_or_a_wasm_error(data: bytes) -> None:
    for candidate in (
        data,
        MAGIC + data,
        MAGIC + b"\2" + unsigned(len(data)) + data,
        MAGIC + b"\7" + unsigned(len(data)) + data,
    ):
        try:
            module = parse(candidate)
            assert module.to_bytes() == candidate
            imports(module)
            exports(module)
        except WasmError as error:
            assert 0 <= error.offset <= len(candidate)


@given(st.integers(0, len(TINY) - 1), st.integers(0, 255))
def test_a_module_with_one_byte_changed_is_read_or_a_wasm_error(place: int, byte: int) -> None:
    changed = TINY[:place] + bytes([byte]) + TINY[place + 1 :]
    try:
        module = parse(changed)
        assert module.to_bytes() == changed
        imports(module)
        exports(module)
    except WasmError:
        pass


MALFORMED = {
    "empty": ("", 0, "does not begin"),
    "text": ("3c68746d6c3e0000", 0, "does not begin"),
    "another version": ("0061736d 02000000", 4, "version 1"),
    "a component": ("0061736d 0d000100", 4, "version 1"),
    "an unknown section": (MAGIC.hex() + "0e 00", 8, "no section with number 14"),
    "a section without a size": (MAGIC.hex() + "01", 9, "end too early"),
    "a section past the end": (MAGIC.hex() + "01 05 01", 10, "5 bytes should follow, and 1 do"),
    "a size of six bytes": (MAGIC.hex() + "01 808080808000", 9, "too many bytes"),
    "a size over 32 bits": (MAGIC.hex() + "01 ffffffff1f", 9, "does not fit in 32 bits"),
    "a section twice": (MAGIC.hex() + "01 01 00 01 01 00", 13, "there twice"),
    "sections out of order": (MAGIC.hex() + "03 01 00 01 01 00", 13, "out of order"),
    "a custom section without a name": (MAGIC.hex() + "00 00", 10, "end too early"),
    "a custom name that is not UTF-8": (MAGIC.hex() + "00 02 01 ff", 10, "not UTF-8"),
}


@pytest.mark.parametrize(("text", "offset", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_modules_are_refused_with_the_place(text: str, offset: int, message: str) -> None:
    with pytest.raises(WasmError, match=message) as caught:
        parse(bytes.fromhex(text))
    assert caught.value.offset == offset


MALFORMED_SECTIONS = {
    "an import of an unknown kind": ("02 05 01 0161 00 05", "no kind of import or export with number 5"),
    "a table of numbers": ("02 07 01 0161 00 01 7f 00", "no type with code 0x7f"),
    "a memory with an unknown flag": ("02 07 01 0161 00 02 08 00", "no limits flag 0x8"),
    "a global that is twice mutable": ("02 07 01 0161 00 03 7f 02", "no mutability flag 0x2"),
    "fewer imports than counted": ("02 05 02 00 00 00 00", "end too early"),
    "bytes after the exports": ("07 06 01 0161 00 00 00", "longer than its entries"),
    "an export of an unknown kind": ("07 05 01 0161 07 00", "number 7"),
    "an export twice": ("07 09 02 0161 00 00 0161 00 00", "'a' is exported twice"),
    "an export name past the end": ("07 03 01 7f 61", "127 bytes should follow"),
}


@pytest.mark.parametrize(("text", "message"), MALFORMED_SECTIONS.values(), ids=MALFORMED_SECTIONS.keys())
def test_malformed_sections_are_refused_when_they_are_read(text: str, message: str) -> None:
    module = parse(MAGIC + bytes.fromhex(text))
    with pytest.raises(WasmError, match=message):
        (imports if text.startswith("02") else exports)(module)


@pytest.mark.parametrize("name", RUNTIMES)
def test_the_real_runtimes_survive_and_show_their_names(name: str) -> None:
    module = parse(runtime(name))
    assert module.to_bytes() == runtime(name)
    assert any(entry.kind is Kind.MEMORY for entry in imports(module))
    assert len(exports(module)) > 20


def test_custom_sections_are_dropped_but_for_what_binaryen_must_know() -> None:
    features, producers = b"\x0ftarget_features\0", b"\x09producers\0"
    data = MAGIC + section(0, producers, 2) + section(1, TYPES, 1) + section(0, features, 3) + section(7, EXPORTS)
    module = parse(data)
    kept = module.without_custom()
    assert kept.to_bytes() == MAGIC + section(1, TYPES, 1) + section(0, features, 3) + section(7, EXPORTS)
    assert parse(kept.to_bytes()) == kept
    assert module.without_custom(keep=()).to_bytes() == MAGIC + section(1, TYPES, 1) + section(7, EXPORTS)
    assert module.without_custom(keep=("producers", "target_features")) == module
    assert module.custom("producers") == module.sections[0]
    assert module.custom("name") is None


def test_other_contents_move_what_follows() -> None:
    module = parse(TINY)
    changed = module.with_payloads({SectionId.TYPE: b"\0" * 200})
    assert parse(changed.to_bytes()) == changed
    assert [one.payload for one in changed.sections[1:]] == [one.payload for one in module.sections[1:]]
    assert changed.sections[1].offset == module.sections[1].offset + 200 - 4 + 1
    assert module.with_payloads({SectionId.CODE: b"\0"}) == module
