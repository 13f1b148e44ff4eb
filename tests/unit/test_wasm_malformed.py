"""Broken modules: each is read, or refused with a WasmError that names a place in it, soon and in little memory."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wasm_modules import FIXTURES, code_module, section, unsigned

from edgekit.wasm.binary import EditError, WasmError
from edgekit.wasm.check import check
from edgekit.wasm.code import bodies
from edgekit.wasm.edits import cut, record
from edgekit.wasm.layout import flag_base
from edgekit.wasm.module import MAGIC, Module, SectionId, parse
from edgekit.wasm.references import direct_references, table_functions


def survives(data: bytes) -> bool:
    """Tell whether ``data`` is well-formed; either way everything that reads modules must cope."""
    try:
        module = parse(data)
    except WasmError as error:
        assert 0 <= error.offset <= len(data)
        return False
    assert module.to_bytes() == data
    for use in (direct_references, table_functions, _edit):
        try:
            use(module)
        except WasmError as error:
            assert 0 <= error.offset <= len(data)
    try:
        check(module)
    except WasmError as error:
        assert 0 <= error.offset <= len(data)
        return False
    return True


def _edit(module: Module) -> None:
    try:
        record(module, flag_base(module))
        cut(module, (), 16)
    except EditError:
        pass


@pytest.mark.parametrize("name", FIXTURES)
def test_a_module_that_ends_early_is_refused_wherever_it_ends(name: str) -> None:
    data = FIXTURES[name]
    whole = parse(data)
    assert survives(data)
    # What is left when whole sections at the end are missing may be a module too: not without promised code or data.
    ends = {len(MAGIC)}
    for place, one in enumerate(whole.sections):
        there = {section.id for section in whole.sections[: place + 1]}
        promised = {SectionId.FUNCTION: SectionId.CODE, SectionId.DATA_COUNT: SectionId.DATA}
        if all(kept in there for promise, kept in promised.items() if promise in there):
            ends.add(one.offset + len(one.payload))
    assert {end for end in range(len(data) + 1) if survives(data[:end])} == ends


@pytest.mark.parametrize("name", FIXTURES)
def test_a_number_made_wrong_at_any_place_is_read_or_refused(name: str) -> None:
    data = FIXTURES[name]
    for place in range(8, len(data), 1 if len(data) < 1000 else 7):
        survives(data[:place] + b"\xff\xff\xff\xff\x0f" + data[place + 1 :])  # the most that 32 bits hold
        survives(data[:place] + b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00" + data[place + 1 :])  # overlong


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(FIXTURES)), st.data())
def test_modules_with_bytes_changed_are_read_or_refused(name: str, draw: st.DataObject) -> None:
    data = bytearray(FIXTURES[name])
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    survives(bytes(data))


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 13), st.binary(max_size=40))
def test_sections_of_any_bytes_are_read_or_refused(number: int, payload: bytes) -> None:
    survives(MAGIC + section(number, payload))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40))
def test_bodies_of_any_bytes_are_read_or_refused(body: bytes) -> None:
    survives(code_module(body))


BILLIONS = unsigned(2**32 - 1)
HUGE = {
    "section": MAGIC + b"\1" + BILLIONS,
    **{f"section {number} of billions": MAGIC + section(number, BILLIONS) for number in range(1, 14)},
    "body": MAGIC + section(1, "01 60 00 00") + section(3, "01 00") + section(10, b"\1" + BILLIONS),
    "locals": code_module(b"\1" + BILLIONS + b"\x7f\x0b"),
    "name": MAGIC + section(2, b"\1" + BILLIONS),
    "data": MAGIC + section(11, b"\1\1" + BILLIONS),
    "memory": MAGIC + section(5, b"\1\0" + BILLIONS),
    "deep": code_module(b"\0" + b"\x02\x40" * 20_000),
    "deep constant": MAGIC + section(6, b"\1\x7f\0" + b"\x41\0" * 20_000 + b"\x6a" * 19_999 + b"\x0b"),
}


@pytest.mark.parametrize("name", HUGE)
def test_what_claims_to_be_huge_takes_no_memory(name: str) -> None:
    tracemalloc.start()
    try:
        good = survives(HUGE[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (1 << 20) + 300 * len(HUGE[name])
    # Billions of locals and of pages are numbers like any other; a start function and a count may be any number.
    few = {"locals", "memory", "deep constant", f"section {SectionId.START.value} of billions"}
    assert good == (name in few)


def test_a_start_function_that_is_not_there_is_no_reason_to_fail() -> None:
    threads = parse(FIXTURES["threads"])
    for index in (0, 6, 2**32 - 1):  # the imported one, and two that do not exist
        changed = threads.with_payloads({SectionId.START: unsigned(index)})
        assert bodies(changed) == bodies(threads) or index == 2**32 - 1
        with pytest.raises(EditError, match="passive data segment 0 goes cannot be told"):
            flag_base(changed)
