import pytest
from wasm_modules import FIXTURES, RUNTIMES, runtime, section, unsigned

from edgekit.wasm.binary import EditError, signed_bytes
from edgekit.wasm.layout import data_ranges, flag_base, layout
from edgekit.wasm.module import MAGIC, Module, SectionId, parse

MIB = 1 << 20


def test_data_of_a_threaded_module_lies_where_its_start_function_puts_it() -> None:
    module = parse(FIXTURES["threads"])
    assert data_ranges(module) == (range(1024, 1029), range(1100, 1104), range(1104, 2000))
    assert layout(module).stack == range(2000, 6400000)
    assert flag_base(module) == 6400000 - 3 * MIB
    assert flag_base(module, depth_bytes=MIB) == 6400000 - MIB


def test_a_stack_below_the_data_reaches_down_to_nothing() -> None:
    module = parse(FIXTURES["stack_first"])
    assert layout(module).stack == range(5 * MIB)
    assert flag_base(module) == 2 * MIB


@pytest.mark.parametrize("name", RUNTIMES)
def test_the_real_runtimes_have_five_mebibytes_of_stack_above_their_data(name: str) -> None:
    found = layout(parse(runtime(name)))
    assert found.data[0].start == 1024
    # wasm-ld puts one word, with which threads agree on who fills the memory, between the data and the stack.
    assert 5 * MIB <= len(found.stack) <= 5 * MIB + 32
    assert flag_base(parse(runtime(name))) == found.stack.stop - 3 * MIB


def module(
    *, stack: str = "", data: tuple[str, ...] = (), export: str | None = None, second: str = "", pages: int = 100
) -> Module:
    """Write a module with a memory of its own: the stack pointer, active data segments, an exported second global."""
    globals_ = [stack or "7f 01 41" + signed_bytes(5 * MIB).hex() + "0b", *([second] if second else [])]
    parts = [
        section(5, b"\1\0" + unsigned(pages)),
        section(6, f"{len(globals_):02x}" + "".join(globals_)),
        section(7, b"\1" + unsigned(len(export)) + export.encode() + b"\3\1") if export else b"",
        section(11, bytes([len(data)]) + b"".join(bytes.fromhex(one) for one in data)),
    ]
    return parse(MAGIC + b"".join(parts))


def active(start: int, size: int) -> str:
    return (b"\0\x41" + signed_bytes(start) + b"\x0b" + unsigned(size) + bytes(size)).hex()


def number(value: int, mutable: int = 0) -> str:
    return (bytes([0x7F, mutable, 0x41]) + signed_bytes(value) + b"\x0b").hex()


def test_what_the_module_states_about_its_stack_is_believed() -> None:
    below = module(data=(active(1024, 10),), export="__data_end", second=number(MIB))
    assert layout(below).stack == range(MIB, 5 * MIB)
    assert flag_base(below) == 2 * MIB
    stated = module(data=(active(1024, 10),), export="__stack_low", second=number(3 * MIB))
    with pytest.raises(EditError, match=f"has {2 * MIB} bytes, too few to keep flags {3 * MIB} bytes"):
        flag_base(stated)


UNPROVEN = {
    "data below, and zeros that no segment shows": (module(data=(active(1024, 10),)), "zeroed data may lie between"),
    "a memory that nothing fills": (module(), "cannot be told"),
    "data on both sides": (module(data=(active(1024, 10), active(6 * MIB, 10))), "cannot be told"),
    "a stack that starts in the data": (module(data=(active(5 * MIB - 4, 10),)), "starts inside the data"),
    "a low end that can change": (
        module(data=(active(1024, 10),), export="__data_end", second=number(MIB, 1)),
        "cannot be told",
    ),
    "a low end inside the data": (
        module(data=(active(1024, 10),), export="__stack_low", second=number(1030)),
        "contradict",
    ),
    "a low end over the top": (
        module(data=(active(1024, 10),), export="__stack_low", second=number(6 * MIB)),
        "contradict",
    ),
    "a stack past the memory": (module(data=(active(6 * MIB, 1),), pages=79), "contradict"),
    "a stack pointer that never moves": (module(stack=number(5 * MIB)), "not a mutable global"),
    "a stack pointer that is computed": (module(stack="7f 01 41 01 41 01 6a 0b"), "does not begin at a constant"),
    "data at a computed address": (module(data=("00 41 01 41 01 6a 0b 01 00",)), "does not begin at a constant"),
    "passive data that nothing copies": (module(data=("01 01 00",)), "passive data segment 0 goes cannot be told"),
}


@pytest.mark.parametrize(("given", "message"), UNPROVEN.values(), ids=UNPROVEN.keys())
def test_a_stack_that_is_not_proven_is_refused(given: Module, message: str) -> None:
    with pytest.raises(EditError, match=message):
        flag_base(given)


def test_imported_globals_hide_the_stack_pointer() -> None:
    with pytest.raises(EditError, match="not a mutable global of the module's own"):
        layout(parse(FIXTURES["sections"]))
    with pytest.raises(EditError, match="has no memory"):
        layout(parse(MAGIC + section(6, "01" + number(5 * MIB, 1))))


def test_data_that_a_computed_start_puts_somewhere_is_not_guessed_at() -> None:
    threads = parse(FIXTURES["threads"])
    code = threads.section(SectionId.CODE)
    assert code is not None
    copy = bytes.fromhex("41 80 08 41 00 41 05 fc 08 00 00")
    assert copy in code.payload
    # The address is read from a global, and the instruction is as long as the constant was.
    moved = threads.with_payloads({SectionId.CODE: code.payload.replace(copy, b"\x23\x81\0" + copy[3:])})
    with pytest.raises(EditError, match="fills memory at an address that is not constant"):
        data_ranges(moved)


def test_flags_that_would_take_half_of_the_stack_are_refused() -> None:
    threads = parse(FIXTURES["threads"])
    assert flag_base(threads, depth_bytes=10) == 6400000 - 10
    with pytest.raises(EditError, match="5 flags would leave the stack less than half of 9 bytes"):
        flag_base(threads, depth_bytes=9)
