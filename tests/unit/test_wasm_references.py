import pytest
from wasm_modules import FIXTURES, RUNTIMES, code_module, runtime, section

from edgekit.wasm.binary import WasmError
from edgekit.wasm.code import bodies, imported_functions, instructions
from edgekit.wasm.module import MAGIC, Module, parse
from edgekit.wasm.references import direct_references, table_functions, table_slots


def by_decoding(module: Module, step: int = 1) -> list[set[int]]:
    """Find the same by decoding every instruction."""
    names = ("call", "return_call", "ref.func")
    return [{one.immediates[0] for one in instructions(body) if one.name in names} for body in bodies(module)[::step]]


def test_calls_tail_calls_and_references_are_found() -> None:
    module = parse(FIXTURES["control"])
    swap = 0
    assert direct_references(module) == tuple(frozenset({swap} if k in (1, 2) else ()) for k in range(6))
    threads = parse(FIXTURES["threads"])
    log, sum_ = 0, 5
    assert direct_references(threads)[4] == {log, sum_}


@pytest.mark.parametrize("name", FIXTURES)
def test_the_fast_way_finds_what_decoding_finds(name: str) -> None:
    module = parse(FIXTURES[name])
    assert list(direct_references(module)) == by_decoding(module)


def test_the_fast_way_finds_in_the_real_runtime_what_decoding_finds() -> None:
    module = parse(runtime(RUNTIMES[-1]))
    fast = direct_references(module)
    assert list(fast[::100]) == by_decoding(module, 100)
    assert sum(map(len, fast)) > 70_000
    every = frozenset().union(*fast, table_functions(module))
    assert max(every) < imported_functions(module) + len(fast)
    # Most functions are called by somebody, or lie in a table.
    assert len(every) > 0.95 * len(fast)


def test_bytes_inside_of_immediates_are_not_taken_for_calls() -> None:
    constants = "44 10 05 10 05 10 05 10 05 1a  fd 0c" + "10 05" * 8 + "1a  41 90 0a 1a  43 10 05 10 05 1a"
    tables = "0e 02 10 10 10  1c 01 7f  1f 40 01 00 10 10 10 07 0b  fd 8c 00" + "10 05" * 8
    body = b"\1\1\x7f" + bytes.fromhex(constants + tables + "28 02 10 1a  10 03  12 04  d2 06 0b")
    module = parse(code_module(body))
    assert direct_references(module) == (frozenset({3, 4, 6, 7}),)
    assert [frozenset(one) for one in by_decoding(module)] == list(direct_references(module))


def test_what_is_no_instruction_is_refused_here_too() -> None:
    for body in ("00 01 ff 0b", "00 fd 9a 01 0b", "00 10", "00 10 80 80 80 80 80 0b"):
        with pytest.raises(WasmError):
            direct_references(parse(code_module(bytes.fromhex(body))))


def test_functions_in_tables_and_globals_are_found_and_declared_ones_are_not() -> None:
    assert table_functions(parse(FIXTURES["sections"])) == {0, 1, 2, 3}
    assert table_functions(parse(FIXTURES["threads"])) == {2, 3}
    assert table_functions(parse(MAGIC + section(9, "01 03 00 02 04 05"))) == frozenset()
    assert table_functions(parse(MAGIC + section(4, "01 40 00 70 00 02 d2 07 0b"))) == {7}


def test_what_active_segments_put_into_the_first_table_is_told_by_place() -> None:
    assert table_slots(parse(FIXTURES["threads"])) == {1: 2, 2: 3}
    assert table_slots(parse(FIXTURES["control"])) == {0: 0, 1: 1}
    # Expressions: ref.func 3 at place 5, then a null, then ref.func 1.
    expressions = section(9, "01 04 41 05 0b 03 d2 03 0b d0 70 0b d2 01 0b")
    assert table_slots(parse(MAGIC + expressions)) == {5: 3, 7: 1}
    # Later segments win, as they do when the module starts.
    assert table_slots(parse(MAGIC + section(9, "02 00 41 01 0b 02 04 05 00 41 02 0b 01 06"))) == {1: 4, 2: 6}


@pytest.mark.parametrize(
    ("payload", "what"),
    [
        ("01 01 00 02 04 05", "passive"),
        ("01 03 00 02 04 05", "declared"),
        ("01 02 01 41 00 0b 00 02 04 05", "in another table"),
        ("01 00 23 00 0b 02 04 05", "at a place that a global gives"),
    ],
)
def test_functions_at_no_known_place_of_the_first_table_are_not_told(payload: str, what: str) -> None:
    assert table_slots(parse(MAGIC + section(9, payload))) == {}, what
