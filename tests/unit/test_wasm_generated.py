"""Modules made at random from every instruction: what was written is read, and edits change what they should."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from wasm_modules import section, unsigned

from edgekit.wasm.binary import Reader, signed_bytes, unsigned_bytes
from edgekit.wasm.check import check
from edgekit.wasm.code import bodies, instructions
from edgekit.wasm.edits import cut, record
from edgekit.wasm.module import MAGIC, Module, SectionId, parse
from edgekit.wasm.opcodes import ONE_BYTE, PREFIXED, Opcode, Shape
from edgekit.wasm.references import direct_references

Written = tuple[bytes, str, tuple[Any, ...]]
INDEX = st.integers(0, 2**32 - 1) | st.integers(0, 300)
PADDING = st.integers(0, 2)
VALUE_BYTES = {0x7F: "i32", 0x7B: "v128", 0x70: "func"}
STRUCTURE = {"else", "end", "catch", "catch_all", "delegate", "block", "loop", "if", "try", "try_table"}
CODES: list[tuple[bytes, Opcode]] = [(bytes([code]), one) for code, one in ONE_BYTE.items()]
CODES += [
    (bytes([prefix]) + unsigned_bytes(code), one) for prefix, table in PREFIXED.items() for code, one in table.items()
]
PLAIN = [one for one in CODES if one[1].name not in STRUCTURE and one[1].shape is not Shape.TYPES]


def _number(value: int, padding: int) -> bytes:
    return unsigned(value, padding if len(unsigned_bytes(value)) + padding <= 5 else 0)


@st.composite
def _memory(draw: st.DrawFn) -> tuple[bytes, tuple[Any, ...]]:
    align, offset, other = draw(st.integers(0, 4)), draw(st.integers(0, 2**64 - 1) | INDEX), draw(st.none() | INDEX)
    flags = bytes([align | (0 if other is None else 0x40)])
    return flags + (b"" if other is None else unsigned(other)) + unsigned(offset), (align, offset, other or 0)


@st.composite
def immediates(draw: st.DrawFn, shape: Shape) -> tuple[bytes, tuple[Any, ...]]:
    """Draw the immediates of an instruction: how they are written, and what must be read."""
    if shape in (Shape.INDEX, Shape.INDICES):
        values = draw(st.tuples(*[INDEX] * (1 if shape is Shape.INDEX else 2)))
        return b"".join(_number(value, draw(PADDING)) for value in values), values
    if shape in (Shape.I32, Shape.I64):
        value = draw(st.integers(-(2**31), 2**31 - 1) if shape is Shape.I32 else st.integers(-(2**63), 2**63 - 1))
        return signed_bytes(value), (value,)
    if shape in (Shape.F32, Shape.F64, Shape.BYTES_16):
        size = {Shape.F32: 4, Shape.F64: 8, Shape.BYTES_16: 16}[shape]
        raw = draw(st.binary(min_size=size, max_size=size))
        return raw, (raw,)
    if shape is Shape.LABELS:
        labels = draw(st.lists(INDEX, min_size=1, max_size=4))
        return unsigned(len(labels) - 1) + b"".join(map(unsigned, labels)), tuple(labels)
    if shape in (Shape.MEMORY, Shape.MEMORY_LANE):
        written, values = draw(_memory())
        lane = draw(st.binary(min_size=1, max_size=1)) if shape is Shape.MEMORY_LANE else b""
        return written + lane, (*values, *lane)
    if shape is Shape.LANE:
        lane = draw(st.binary(min_size=1, max_size=1))
        return lane, (*lane,)
    if shape is Shape.HEAP:
        index = draw(st.integers(0, 2**32 - 1))
        return signed_bytes(index), (index,)
    return (b"\0" if shape is Shape.ZERO else b""), ()


@st.composite
def bodies_written(draw: st.DrawFn) -> tuple[bytes, list[Written]]:
    """Draw locals, and instructions with blocks that lie in each other."""
    runs = draw(st.lists(st.tuples(st.integers(0, 2**20), st.sampled_from(sorted(VALUE_BYTES))), max_size=3))
    head = unsigned(len(runs)) + b"".join(unsigned(count) + bytes([code]) for count, code in runs)
    written: list[Written] = []
    depth = 0
    for _ in range(draw(st.integers(0, 12))):
        act = draw(st.integers(0, 9))
        if act == 0 and depth:
            depth -= 1
            written.append((b"\x0b", "end", ()))
        elif act == 1:
            depth += 1
            code, name = draw(st.sampled_from([(2, "block"), (3, "loop"), (4, "if"), (6, "try")]))
            written.append((bytes([code, 0x40]), name, (None,)))
        else:
            code_bytes, opcode = draw(st.sampled_from(PLAIN))
            raw, values = draw(immediates(opcode.shape))
            written.append((code_bytes + raw, opcode.name, values))
    written += [(b"\x0b", "end", ())] * (depth + 1)
    return head + b"".join(one[0] for one in written), written


@st.composite
def modules(draw: st.DrawFn) -> tuple[bytes, list[list[Written]]]:
    """Draw a module with a memory, functions, custom sections anywhere, and sizes padded here and there."""
    drawn = draw(st.lists(bodies_written(), min_size=1, max_size=3))
    count = unsigned(len(drawn), draw(PADDING))
    code = count + b"".join(unsigned(len(raw), draw(PADDING)) + raw for raw, _ in drawn)
    parts = [
        section(1, "01 60 00 00", draw(PADDING)),
        section(3, count + b"\0" * len(drawn), draw(PADDING)),
        section(5, "01 04 01" if draw(st.booleans()) else "01 00 01", draw(PADDING)),
        section(10, code, draw(PADDING)),
    ]
    custom = [
        section(0, b"\1" + draw(st.sampled_from([b"x", b"y"])) + draw(st.binary(max_size=5)), draw(PADDING))
        if draw(st.booleans())
        else b""
        for _ in range(5)
    ]
    data = MAGIC + custom[4] + b"".join(part + extra for part, extra in zip(parts, custom[:4], strict=True))
    return data, [written for _, written in drawn]


@settings(max_examples=150, deadline=None)
@given(modules())
def test_what_was_written_is_read_and_written_again(drawn: tuple[bytes, list[list[Written]]]) -> None:
    data, written = drawn
    module = parse(data)
    check(module)
    assert module.to_bytes() == data
    for body, expected in zip(bodies(module), written, strict=True):
        read = list(instructions(body))
        assert [(one.name, one.immediates) for one in read] == [(name, values) for _, name, values in expected]
        ends = [one.offset for one in read[1:]] + [body.offset + len(body.data)]
        raw = [data[one.offset : end] for one, end in zip(read, ends, strict=True)]
        assert raw == [one for one, _, _ in expected]


@settings(max_examples=150, deadline=None)
@given(modules())
def test_references_are_those_that_were_written(drawn: tuple[bytes, list[list[Written]]]) -> None:
    data, written = drawn
    names = ("call", "return_call", "ref.func")
    expected = [frozenset(values[0] for _, name, values in body if name in names) for body in written]
    assert list(direct_references(parse(data))) == expected


def _rest(module: Module) -> list[tuple[int, bytes, bytes]]:
    return [(one.id, one.header, one.payload) for one in module.sections if one.id is not SectionId.CODE]


@settings(max_examples=100, deadline=None)
@given(modules(), st.sets(st.integers(0, 2)), st.integers(0, 65000))
def test_edits_touch_bodies_alone(drawn: tuple[bytes, list[list[Written]]], kept: set[int], base: int) -> None:
    module = parse(drawn[0])
    old = bodies(module)
    keep = {k for k in kept if k < len(old)}
    for edited in (record(module, base), cut(module, keep, 16)):
        check(edited)
        assert _rest(edited) == _rest(module)
        assert parse(edited.to_bytes()) == edited
    for k, (before, after) in enumerate(zip(old, bodies(record(module, base)), strict=True)):
        assert after.locals_() == before.locals_()
        assert next(instructions(after)).immediates == (k,)
        assert [one[1:] for one in instructions(after)][3:] == [one[1:] for one in instructions(before)]
    for k, (before, after) in enumerate(zip(old, bodies(cut(module, keep, 16)), strict=True)):
        assert ((after.size, after.data) == (before.size, before.data)) == (k in keep)


@settings(max_examples=100, deadline=None)
@given(modules())
def test_custom_sections_are_dropped_but_for_those_to_keep(drawn: tuple[bytes, list[list[Written]]]) -> None:
    module = parse(drawn[0])
    bare = module.without_custom(keep=("y",))
    assert [one.payload for one in bare.sections] == [
        one.payload for one in module.sections if one.id is not SectionId.CUSTOM or one.payload[1:2] == b"y"
    ]
    assert parse(bare.to_bytes()) == bare


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_numbers_are_read_as_they_are_written(value: int) -> None:
    written = signed_bytes(value)
    reader = Reader(written)
    assert (reader.signed(64), reader.at_end) == (value, True)
    # As short as it goes: with a byte less it would be another number.
    assert len(written) == 1 or not -(1 << (7 * (len(written) - 1) - 1)) <= value < 1 << (7 * (len(written) - 1) - 1)
