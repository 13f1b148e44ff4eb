import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from wasm_modules import FIXTURES, FOLDER, code_module, node, refusals

from edgekit.wasm.binary import Reader, WasmError, unsigned_bytes
from edgekit.wasm.code import bodies, instructions
from edgekit.wasm.instructions import Instruction, constant
from edgekit.wasm.module import parse
from edgekit.wasm.opcodes import ONE_BYTE, PREFIXED
from edgekit.wasm.types import ValueType

BLOCK = "02 40"


def decoded(body: str) -> list[Instruction]:
    """Decode instructions given in hexadecimal, in a function without locals."""
    return list(instructions(bodies(parse(code_module(b"\0" + bytes.fromhex(body))))[0]))


def written_names(text: str) -> Iterator[str]:
    """Return the instructions of a text that has one a line."""
    for line in text.splitlines():
        word = line.split()[0] if line.startswith("    ") else ""
        if re.fullmatch(r"[a-z][a-z0-9_.]*", word.rstrip(")")):
            yield word.rstrip(")")


def all_names(name: str) -> list[str]:
    return [one.name for body in bodies(parse(FIXTURES[name])) for one in instructions(body)]


def test_every_instruction_has_the_name_that_wabt_gives_its_code() -> None:
    read = [name for name in all_names("instructions") if name not in ("unreachable", "end")]
    written = [name for name in written_names((FOLDER / "instructions.wat").read_text()) if name != "unreachable"]
    assert read == written
    known = {one.name for table in (ONE_BYTE, *PREFIXED.values()) for one in table.values()}
    known -= set(read) | set(all_names("control"))
    # wabt writes these in an older form; below they are read from bytes.
    assert known == {"call_ref", "return_call_ref", "ref.as_non_null", "br_on_null", "br_on_non_null"}


_PROBE = """
const section = (id, bytes) => [id, bytes.length, ...bytes];
const head = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...section(1, [1, 0x60, 0, 0]), ...section(3, [1, 0])];
const rest = [...section(4, [1, 0x70, 0, 1]), ...section(5, [1, 0, 1])];
const invalid = [];
for (const code of JSON.parse(process.argv[1])) {
  const body = [0, 0, ...code, ...new Array(20).fill(0), 0x0b];
  const bytes = [...head, ...rest, ...section(10, [1, body.length, ...body])];
  try { new WebAssembly.Module(new Uint8Array(bytes)); }
  catch (error) { if (/invalid \\S*\\s?opcode/i.test(error.message)) invalid.push(code); }
}
console.log(JSON.stringify(invalid));
"""


def test_the_codes_that_mean_nothing_are_those_that_mean_nothing_to_v8() -> None:
    codes = [[code] for code in range(256) if code not in (*PREFIXED, 0xFB)]
    codes += [[prefix, *unsigned_bytes(code)] for prefix in PREFIXED for code in range(300)]
    unknown = []
    for code in codes:
        try:
            decoded(bytes([*code, *bytes(20), 0x0B]).hex())
        except WasmError as error:
            if "no instruction with code" in str(error):
                unknown.append(code)
    assert node(_PROBE, str(codes)) == [code for code in unknown if code != [0xD3]]  # ref.eq: garbage collection


IMMEDIATES = {
    "a negative number": ("41 80 80 80 80 78 1a", ("i32.const", (-(2**31),))),
    "a padded number": ("41 ff ff ff ff 7f 1a", ("i32.const", (-1,))),
    "a number of 64 bits": ("42 80 80 80 80 80 80 80 80 80 7f 1a", ("i64.const", (-(2**63),))),
    "a float, as its bytes": ("43 00 00 c0 7f 1a", ("f32.const", (b"\0\0\xc0\x7f",))),
    "a double, as its bytes": ("44 00 00 00 00 00 00 f8 ff 1a", ("f64.const", (b"\0\0\0\0\0\0\xf8\xff",))),
    "a vector": ("fd 0c" + "ab" * 16 + "1a", ("v128.const", (b"\xab" * 16,))),
    "a padded code after a prefix": ("fd 8c 80 80 00" + "ab" * 16 + "1a", ("v128.const", (b"\xab" * 16,))),
    "an offset of 32 bits": ("28 02 ff ff ff ff 0f", ("i32.load", (2, 2**32 - 1, 0))),
    "an offset of 64 bits": ("28 02 ff ff ff ff ff ff ff ff ff 01", ("i32.load", (2, 2**64 - 1, 0))),
    "another memory": ("28 42 03 05", ("i32.load", (2, 5, 3))),
    "a lane of another memory": ("fd 54 40 03 05 0f", ("v128.load8_lane", (0, 5, 3, 15))),
    "an atomic": ("fe 48 02 04", ("i32.atomic.rmw.cmpxchg", (2, 4, 0))),
    "a fence": ("fe 03 00", ("atomic.fence", ())),
    "two memories": ("fc 0a 01 02", ("memory.copy", (1, 2))),
    "a segment and a memory": ("fc 08 01 02", ("memory.init", (1, 2))),
    "labels, the default last": ("0e 02 00 01 02", ("br_table", (0, 1, 2))),
    "only the default": ("0e 00 01", ("br_table", (1,))),
    "a type and a table": ("11 81 00 02", ("call_indirect", (1, 2))),
    "a selected type": ("1c 01 7b", ("select", (ValueType("v128"),))),
    "a heap type": ("d0 6f", ("ref.null", ("extern",))),
    "a type index as a heap type": ("d0 05", ("ref.null", (5,))),
    "typed references": ("14 05", ("call_ref", (5,))),
    "a typed tail call": ("15 05", ("return_call_ref", (5,))),
    "an assertion": ("d4", ("ref.as_non_null", ())),
    "a branch on null": ("d5 01", ("br_on_null", (1,))),
    "a branch on another": ("d6 01", ("br_on_non_null", (1,))),
}


@pytest.mark.parametrize(("text", "expected"), IMMEDIATES.values(), ids=IMMEDIATES.keys())
def test_immediates_are_read_whole(text: str, expected: tuple[str, tuple[object, ...]]) -> None:
    read = decoded(text + "0b")
    assert (read[0].name, read[0].immediates) == expected
    assert [one.name for one in read[1:]] == (["drop", "end"] if text.endswith("1a") else ["end"])


BLOCK_TYPES = {"40": None, "7f": ValueType("i32"), "70": ValueType("ref", True, "func"), "05": 5, "85 00": 5} | {
    "63 70": ValueType("ref", True, "func"),
    "64 05": ValueType("ref", False, 5),
}


@pytest.mark.parametrize(("text", "expected"), BLOCK_TYPES.items())
def test_block_types_are_nothing_a_result_or_an_index(text: str, expected: ValueType | int | None) -> None:
    block, inner, end, last = decoded(f"03 {text} 01 0b 0b")
    assert block.immediates == (expected,)
    assert (inner.name, end.name, last.name) == ("nop", "end", "end")


def test_the_clauses_of_try_table_are_read() -> None:
    read = decoded("1f 7f 04 00 01 02 01 03 04 02 05 03 06 0b 0b")
    clauses = (("catch", 1, 2), ("catch_ref", 3, 4), ("catch_all", 5), ("catch_all_ref", 6))
    assert read[0][1:] == ("try_table", (ValueType("i32"), *clauses))


def test_offsets_count_from_the_start_of_the_module() -> None:
    data = code_module(b"\0\x41\x07\x1a\x0b")
    read = list(instructions(bodies(parse(data))[0]))
    assert [data[one.offset] for one in read] == [0x41, 0x1A, 0x0B]


MALFORMED = {
    "an unknown opcode": ("01 ff 0b", 1, "no instruction with code 0xff"),
    "an unknown opcode after a prefix": ("01 fd 9a 01 0b", 1, "no instruction with code 0xfd 0x9a"),
    "an opcode over 32 bits": ("fd ff ff ff ff 1f 0b", 1, "does not fit in 32 bits"),
    "garbage collection": ("fb 00 00 0b", 0, "no instruction with code 0xfb"),
    "an unknown memory flag": ("28 80 01 00 0b", 1, "no memory flag 0x80"),
    "a fence with an order": ("fe 03 01 0b", 2, "no fence flag 0x1"),
    "an unknown clause": ("1f 40 01 04 00 0b 0b", 3, "no catch clause flag 0x4"),
    "an unknown heap type": ("d0 40 0b", 1, "no heap type -64"),
    "an unknown block type": ("02 41 0b 0b", 1, "no type with code 0x41 here"),
    "a negative type index": ("02 80 7f 0b 0b", 1, "no block type -128"),
    "a selected type that is none": ("1c 01 40 0b", 2, "no type with code 0x40"),
    "an overlong number": ("41 80 80 80 80 80 00 0b", 1, "too many bytes"),
    "a number over 32 bits": ("41 80 80 80 80 08 0b", 1, "does not fit in 32 bits"),
    "a number under 32 bits": ("41 ff ff ff ff 77 0b", 1, "does not fit in 32 bits"),
    "a number over 64 bits": ("42 80 80 80 80 80 80 80 80 80 01 0b", 1, "does not fit in 64 bits"),
    "an offset over 64 bits": ("28 00 ff ff ff ff ff ff ff ff ff 02 0b", 2, "does not fit in 64 bits"),
    "billions of labels": ("0e ff ff ff ff 0f 0b", 1, "4294967295 labels do not fit in the 1 bytes"),
    "billions of clauses": ("1f 40 ff ff ff ff 0f 0b", 2, "4294967295 catch clauses do not fit"),
    "billions of selected types": ("1c ff ff ff ff 0f 0b", 1, "4294967295 types do not fit"),
    "a vector that ends early": ("fd 0c 00 0b", 2, "16 bytes should follow, and 2 do"),
    "no end": ("01 01", 2, "end too early"),
    "an end too few": (f"{BLOCK} 0b", 3, "end too early"),
    "an end too many": ("0b 0b", 1, "longer than its entries"),
    "an else in nothing": ("05 0b", 0, "'else' does not stand"),
    "an else in a block": (f"{BLOCK} 05 0b 0b", 2, "'else' does not stand"),
    "a second else": ("04 40 05 05 0b 0b", 3, "'else' does not stand"),
    "a catch in an if": ("04 40 07 00 0b 0b", 2, "'catch' does not stand"),
    "a catch after catch_all": ("06 40 19 07 00 0b 0b", 3, "'catch' does not stand"),
    "a second catch_all": ("06 40 19 19 0b 0b", 3, "'catch_all' does not stand"),
    "a delegate in a block": (f"{BLOCK} 18 00 0b", 2, "'delegate' does not end a 'try'"),
    "a delegate after a catch": ("06 40 07 00 18 00 0b", 4, "'delegate' does not end a 'try'"),
    "a delegate of the function": ("18 00 0b", 0, "'delegate' does not end a 'try'"),
}


@pytest.mark.parametrize(("text", "at", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_instructions_are_refused_with_the_place(text: str, at: int, message: str) -> None:
    start = bodies(parse(code_module(b"\0" + bytes.fromhex(text))))[0].offset + 1
    with pytest.raises(WasmError, match=message) as caught:
        decoded(text)
    assert caught.value.offset == start + at


@pytest.mark.parametrize("depth", [100_000])
def test_blocks_may_lie_in_blocks_however_deep(depth: int) -> None:
    assert len(decoded(BLOCK * depth + "0b" * depth + "0b")) == 2 * depth + 1
    with pytest.raises(WasmError, match="end too early"):
        decoded(BLOCK * depth)


def test_constant_expressions_hold_constant_instructions_alone() -> None:
    read = constant(Reader(bytes.fromhex("23 00 41 03 6a 0b"), 50))
    assert [one[1:] for one in read] == [("global.get", (0,)), ("i32.const", (3,)), ("i32.add", ())]
    assert [one.offset for one in read] == [50, 52, 54]
    with pytest.raises(WasmError, match=r"'local\.get' does not belong in a constant expression") as caught:
        constant(Reader(bytes.fromhex("41 03 20 00 0b"), 50))
    assert caught.value.offset == 52


def test_the_fixtures_are_modules_to_v8_too(tmp_path: Path) -> None:
    assert refusals(FIXTURES.values(), tmp_path) == [None] * len(FIXTURES)
    assert "invalid" in str(refusals([code_module(b"\0\xff\x0b")], tmp_path)[0]).lower()
