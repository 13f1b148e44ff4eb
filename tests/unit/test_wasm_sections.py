import pytest
from wasm_modules import FIXTURES, RUNTIMES, code_module, refusals, runtime, section

from edgekit.wasm import sections
from edgekit.wasm.binary import WasmError
from edgekit.wasm.check import check
from edgekit.wasm.code import bodies, imported_functions, instructions
from edgekit.wasm.module import MAGIC, Module, SectionId, parse
from edgekit.wasm.names import function_names
from edgekit.wasm.sections import Export, Import, Kind
from edgekit.wasm.types import FunctionType, GlobalType, Limits, TableType, ValueType

I32, I64, F32, F64, V128 = (ValueType(name) for name in ("i32", "i64", "f32", "f64", "v128"))
FUNC, EXTERN = ValueType("ref", True, "func"), ValueType("ref", True, "extern")


@pytest.fixture(params=["sections", "padded_sections"])
def every(request: pytest.FixtureRequest) -> Module:
    """Every section; in the second module with sizes of five bytes."""
    return parse(FIXTURES[request.param])


def texts(expression: object) -> list[tuple[object, ...]]:
    assert isinstance(expression, tuple)
    return [(one.name, *one.immediates) for one in expression]


def test_types_and_imports_are_read(every: Module) -> None:
    assert sections.types(every)[:2] == (
        FunctionType((I32,), (I32,)),
        FunctionType((I32, I64, F32, F64, V128, FUNC, EXTERN), (I64, F64)),
    )
    assert sections.imports(every) == (
        Import("env", "function", Kind.FUNCTION, 0),
        Import("env", "table", Kind.TABLE, TableType(EXTERN, Limits(1, 2, False, False))),
        Import("env", "memory", Kind.MEMORY, Limits(1, 2, True, False)),
        Import("env", "global", Kind.GLOBAL, GlobalType(I32, False)),
        Import("env", "mutable", Kind.GLOBAL, GlobalType(I64, True)),
        Import("env", "tag", Kind.TAG, 2),
    )
    assert imported_functions(every) == 1


def test_what_the_module_defines_is_read(every: Module) -> None:
    assert sections.functions(every) == (0, 4, 1)
    assert [table.type for table in sections.tables(every)] == [
        TableType(FUNC, Limits(10, 20, False, False)),
        TableType(FUNC, Limits(1, None, False, True)),
    ]
    assert sections.memories(every) == (Limits(1, None, False, False), Limits(1, 2, False, True))
    assert sections.tags(every) == (3,)
    assert sections.types(every)[3] == FunctionType((I64, F32), ())
    assert sections.start(every) == 2
    read = [(one.type, texts(one.init)) for one in sections.globals_(every)]
    assert read == [
        (GlobalType(I32, False), [("i32.const", -5)]),
        (
            GlobalType(I32, True),
            [("global.get", 0), ("i32.const", 3), ("i32.const", 4), ("i32.mul",), ("i32.add",)],
        ),
        (GlobalType(V128, False), [("v128.const", bytes([1, *[0] * 7, 2, *[0] * 7]))]),
        (GlobalType(FUNC, False), [("ref.func", 1)]),
        (GlobalType(EXTERN, False), [("ref.null", "extern")]),
        (GlobalType(F64, False), [("f64.const", bytes([0, 0, 0, 0, 0, 0, 8, 0x40]))]),
    ]


def test_exports_are_read(every: Module) -> None:
    assert sections.exports(every) == (
        Export("function", Kind.FUNCTION, 1),
        Export("table", Kind.TABLE, 1),
        Export("memory", Kind.MEMORY, 1),
        Export("global", Kind.GLOBAL, 2),
        Export("tag", Kind.TAG, 1),
        Export("é", Kind.FUNCTION, 0),
    )


def test_every_form_of_element_segment_is_read(every: Module) -> None:
    read = [
        (e.table, e.where and texts(e.where), e.declared, e.functions, len(e.items)) for e in sections.elements(every)
    ]
    zero, two, wide = [("i32.const", 0)], [("i32.const", 2)], [("i64.const", 0)]
    assert read == [
        (1, zero, False, (1, 0), 2),
        (None, None, False, (1,), 1),
        (None, None, True, (2,), 1),
        (1, two, False, (1,), 2),
        (None, None, False, (3,), 2),
        (None, None, True, (1,), 1),
        (0, zero, False, (), 1),
        (2, wide, False, (2,), 1),
    ]
    assert [element.type.heap for element in sections.elements(every)] == ["func"] * 6 + ["extern", "func"]


def test_data_segments_are_read(every: Module) -> None:
    assert sections.data_count(every) == 4
    found = sections.segments(every)
    assert [(one.memory, one.where and texts(one.where), one.data) for one in found] == [
        (0, [("i32.const", 8)], b"active"),
        (None, None, b"passive"),
        (0, [("i32.const", 1), ("i32.const", 2), ("i32.add",)], b"extended"),
        (None, None, b""),
    ]
    data = every.to_bytes()
    assert [data[one.offset : one.offset + len(one.data)] for one in found] == [one.data for one in found]


def test_names_and_locals_are_read(every: Module) -> None:
    assert function_names(every) == {0: "imported", 1: "double", 2: "begin", 3: "declared_only"}
    assert [body.locals_() for body in bodies(every)] == [((1, I32),), (), ()]
    assert [body.locals_bytes() for body in bodies(every)] == [3, 1, 1]
    assert [one.name for one in instructions(bodies(every)[0])] == ["local.get", "i32.const", "i32.mul", "end"]


def test_a_module_without_sections_has_nothing() -> None:
    empty = parse(MAGIC)
    check(empty)
    assert sections.start(empty) is None and sections.data_count(empty) is None
    assert (sections.elements(empty), sections.segments(empty), bodies(empty), function_names(empty)) == (
        (),
        (),
        (),
        {},
    )


# What wabt does not write: active data for another memory, a table with a first value, typed references.
BY_HAND = {
    "data for the second memory": section(5, "02 00 01 00 01") + section(11, "01 02 01 41 08 0b 02 aabb"),
    "a table with a first value": section(1, "01 60 00 00")
    + section(3, "01 00")
    + section(4, "01 40 00 64 70 00 02 d2 00 0b")
    + section(10, "01 02 00 0b"),
    "typed references": section(1, "02 60 00 00 60 02 64 00 63 00 01 63 6e") + section(6, "01 63 00 00 d0 00 0b"),
    "the table 0 stated": section(4, "01 70 00 02") + section(9, "01 06 00 41 00 0b 70 01 d0 70 0b"),
    "a passive segment of table references": section(4, "01 6f 00 02") + section(9, "01 05 6f 01 d0 6f 0b"),
    "names of everything": section(0, "04 6e616d65  00 02 0161  02 01 00  0b 01 00  01 01 00"),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_what_wabt_does_not_write_is_read_too(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = MAGIC + BY_HAND[name]
    assert refusals([data], tmp_path_factory.mktemp("wasm")) == [None]
    module = parse(data)
    check(module)
    assert module.to_bytes() == data


def test_what_is_written_by_hand_means_what_it_says() -> None:
    segment = sections.segments(parse(MAGIC + BY_HAND["data for the second memory"]))[0]
    assert (segment.memory, segment.data) == (1, b"\xaa\xbb")
    table = sections.tables(parse(MAGIC + BY_HAND["a table with a first value"]))[0]
    assert table.type.of == ValueType("ref", False, "func")
    assert table.init is not None and texts(table.init) == [("ref.func", 0)]
    types = sections.types(parse(MAGIC + BY_HAND["typed references"]))
    assert types[1].parameters == (ValueType("ref", False, 0), ValueType("ref", True, 0))
    assert str(types[1].parameters) == str((ValueType("ref", False, 0), ValueType("ref", True, 0)))
    assert [str(one) for one in (*types[1].parameters, I32)] == ["(ref 0)", "(ref null 0)", "i32"]


@pytest.mark.parametrize("name", RUNTIMES)
def test_every_section_of_the_real_runtimes_is_read_and_a_sample_of_their_code(name: str) -> None:
    module = parse(runtime(name))
    assert module.to_bytes() == runtime(name)
    code = module.section(SectionId.CODE)
    assert code is not None and len(bodies(module)) > 15_000
    assert sum(len(one.data) for one in sections.segments(module)) > 1_000_000
    assert len(sections.elements(module)[0].items) > 11_000
    assert len(sections.types(module)) > 200
    sample = bodies(module)[::200]
    assert sum(1 for body in sample for _ in instructions(body)) > 10_000


MALFORMED = {
    "an unknown form of type": (section(1, "01 5f 00"), 11, "form 0x5f is not a function type"),
    "a type of an unknown value": (section(1, "01 60 01 7a 00"), 13, "no type with code 0x7a here"),
    "billions of types": (section(1, "ff ff ff ff 0f"), 10, "4294967295 entries do not fit in the 0 bytes"),
    "billions of parameters": (section(1, "01 60 ff ff ff ff 0f 00"), 12, "4294967295 types do not fit in the 1 bytes"),
    "a table of numbers": (section(4, "01 7f 00 01"), 11, "no type with code 0x7f here"),
    "an unknown form of table": (section(4, "01 40 01 70 00 01 d0 70 0b"), 12, "no table flag 0x1"),
    "an unknown flag of memory": (section(5, "01 09 01 02"), 11, "no limits flag 0x9"),
    "a memory over 32 bits": (section(5, "01 00 ff ff ff ff 1f"), 12, "does not fit in 32 bits"),
    "a memory over 64 bits": (section(5, "01 04 80 80 80 80 80 80 80 80 80 02"), 12, "does not fit in 64 bits"),
    "an unknown mutability": (section(6, "01 7f 02 41 00 0b"), 12, "no mutability flag 0x2"),
    "a global that is no constant": (section(6, "01 7f 00 10 00 0b"), 13, "'call' does not belong in a constant"),
    "a global without an end": (section(6, "01 7f 00 41 00"), 15, "end too early"),
    "a tag with an attribute": (section(13, "01 01 00"), 11, "no tag attribute flag 0x1"),
    "a start with more": (section(8, "00 00"), 11, "The start section is longer"),
    "an unknown form of elements": (section(9, "01 08"), 11, "no element segment flag 0x8"),
    "an unknown kind of elements": (section(9, "01 01 01 00"), 12, "no element kind flag 0x1"),
    "elements of numbers": (section(9, "01 05 7f 00"), 12, "no type with code 0x7f here"),
    "billions of elements": (section(9, "01 00 41 00 0b ff ff ff ff 0f 00"), 15, "elements do not fit in the 1 bytes"),
    "an unknown form of data": (section(11, "01 03"), 11, "no data segment flag 0x3"),
    "data past the end": (section(11, "01 01 7f aa"), 13, "127 bytes should follow, and 1 do"),
    "fewer data than announced": (section(12, "02") + section(11, "01 01 00"), 10, "2 data segments are announced"),
    "data announced and not there": (section(12, "02"), 10, "2 data segments are announced, and there are 0"),
    "functions without bodies": (section(1, "01 60 00 00") + section(3, "01 00"), 18, "none has a body"),
    "more bodies than functions": (section(10, "01 02 00 0b"), 10, "0 functions are declared, and 1 have a body"),
    "fewer bodies than functions": (section(3, "02 00 00") + section(10, "01 02 00 0b"), 15, "2 .* and 1 have a body"),
    "bytes after the bodies": (section(3, "01 00") + section(10, "01 02 00 0b 00"), 18, "code section is longer"),
    "a body past the end": (section(3, "01 00") + section(10, "01 7f 00 0b"), 16, "127 bytes should follow, and 2 do"),
    "an empty body": (section(3, "01 00") + section(10, "01 00"), 16, "end too early"),
    "locals over 32 bits": (
        section(3, "01 00") + section(10, "01 0e 02 ff ff ff ff 0f 7f ff ff ff ff 0f 7f 0b"),
        16,
        "more locals than 32 bits can count",
    ),
    "billions of runs of locals": (section(3, "01 00") + section(10, "01 06 ff ff ff ff 0f 0b"), 16, "do not fit in"),
    "an unknown kind of names": (section(0, "04 6e616d65 0c 00"), 15, "no subsection of names with number 12"),
    "names past the end": (section(0, "04 6e616d65 01 7f 00"), 17, "127 bytes should follow"),
    "billions of names": (section(0, "04 6e616d65 01 05 ff ff ff ff 0f"), 17, "4294967295 names do not fit"),
    "bytes after the names": (section(0, "04 6e616d65 01 02 00 00"), 18, "function names is longer"),
}


@pytest.mark.parametrize(("data", "offset", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_sections_are_refused_with_the_place(data: bytes, offset: int, message: str) -> None:
    module = parse(MAGIC + data)
    assert module.to_bytes() == MAGIC + data
    with pytest.raises(WasmError, match=message) as caught:
        check(module)
    assert caught.value.offset == offset


def test_locals_of_a_type_with_an_index_are_read() -> None:
    body = bodies(parse(code_module(bytes.fromhex("02 03 7f 01 63 00 0b"))))[0]
    assert body.locals_() == ((3, I32), (1, ValueType("ref", True, 0)))
    assert body.locals_bytes() == 6
