"""Every instruction: its code, the immediates that follow it, its name in the text format.

Source: the instruction index of the WebAssembly core specification 3.0 without garbage collection, the threads
proposal, and the legacy form of exception handling. A line of a table is: the first code, the shape of the immediates,
then the names of consecutive codes; ``.`` stands for a code that means nothing.
"""

from enum import Enum
from typing import NamedTuple


class Shape(Enum):
    """The immediates of an instruction, as they lie in the file."""

    NONE = "none"
    INDEX = "index"  # a u32: of a function, type, local, global, table, memory, label, tag, segment
    INDICES = "indices"  # two u32
    BLOCK = "block"  # a block type
    LABELS = "labels"  # br_table: a vector of labels, and one more
    CATCHES = "catches"  # try_table: a block type, and a vector of catch clauses
    TYPES = "types"  # select: a vector of value types
    HEAP = "heap"  # a heap type
    MEMORY = "memory"  # alignment, a memory's index if bit 6 says so, offset
    MEMORY_LANE = "memory_lane"  # the same, and the byte of a lane
    LANE = "lane"  # a byte
    BYTES_16 = "bytes_16"  # v128.const, i8x16.shuffle
    I32 = "i32"
    I64 = "i64"
    F32 = "f32"
    F64 = "f64"
    ZERO = "zero"  # a byte that must be 0


class Opcode(NamedTuple):
    """An instruction's name, and the shape of its immediates."""

    name: str
    shape: Shape


_ONE_BYTE = """
00 none unreachable nop
02 block block loop if
05 none else
06 block try
07 index catch throw rethrow
0a none throw_ref end
0c index br br_if
0e labels br_table
0f none return
10 index call
11 indices call_indirect
12 index return_call
13 indices return_call_indirect
14 index call_ref return_call_ref
18 index delegate
19 none catch_all drop select
1c types select
1f catches try_table
20 index local.get local.set local.tee global.get global.set table.get table.set
28 memory i32.load i64.load f32.load f64.load
2c memory i32.load8_s i32.load8_u i32.load16_s i32.load16_u
30 memory i64.load8_s i64.load8_u i64.load16_s i64.load16_u i64.load32_s i64.load32_u
36 memory i32.store i64.store f32.store f64.store i32.store8 i32.store16 i64.store8 i64.store16 i64.store32
3f index memory.size memory.grow
41 i32 i32.const
42 i64 i64.const
43 f32 f32.const
44 f64 f64.const
45 none i32.eqz i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u
50 none i64.eqz i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u
5b none f32.eq f32.ne f32.lt f32.gt f32.le f32.ge f64.eq f64.ne f64.lt f64.gt f64.le f64.ge
67 none i32.clz i32.ctz i32.popcnt i32.add i32.sub i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u
71 none i32.and i32.or i32.xor i32.shl i32.shr_s i32.shr_u i32.rotl i32.rotr
79 none i64.clz i64.ctz i64.popcnt i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u
83 none i64.and i64.or i64.xor i64.shl i64.shr_s i64.shr_u i64.rotl i64.rotr
8b none f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt
92 none f32.add f32.sub f32.mul f32.div f32.min f32.max f32.copysign
99 none f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt
a0 none f64.add f64.sub f64.mul f64.div f64.min f64.max f64.copysign
a7 none i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u
ac none i64.extend_i32_s i64.extend_i32_u i64.trunc_f32_s i64.trunc_f32_u i64.trunc_f64_s i64.trunc_f64_u
b2 none f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64
b7 none f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32
bc none i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32 f64.reinterpret_i64
c0 none i32.extend8_s i32.extend16_s i64.extend8_s i64.extend16_s i64.extend32_s
d0 heap ref.null
d1 none ref.is_null
d2 index ref.func
d4 none ref.as_non_null
d5 index br_on_null br_on_non_null
"""

_FC = """
00 none i32.trunc_sat_f32_s i32.trunc_sat_f32_u i32.trunc_sat_f64_s i32.trunc_sat_f64_u
04 none i64.trunc_sat_f32_s i64.trunc_sat_f32_u i64.trunc_sat_f64_s i64.trunc_sat_f64_u
08 indices memory.init
09 index data.drop
0a indices memory.copy
0b index memory.fill
0c indices table.init
0d index elem.drop
0e indices table.copy
0f index table.grow table.size table.fill
"""

_FD = """
00 memory v128.load v128.load8x8_s v128.load8x8_u v128.load16x4_s v128.load16x4_u v128.load32x2_s v128.load32x2_u
07 memory v128.load8_splat v128.load16_splat v128.load32_splat v128.load64_splat v128.store
0c bytes_16 v128.const i8x16.shuffle
0e none i8x16.swizzle i8x16.splat i16x8.splat i32x4.splat i64x2.splat f32x4.splat f64x2.splat
15 lane i8x16.extract_lane_s i8x16.extract_lane_u i8x16.replace_lane
18 lane i16x8.extract_lane_s i16x8.extract_lane_u i16x8.replace_lane i32x4.extract_lane i32x4.replace_lane
1d lane i64x2.extract_lane i64x2.replace_lane f32x4.extract_lane f32x4.replace_lane
21 lane f64x2.extract_lane f64x2.replace_lane
23 none i8x16.eq i8x16.ne i8x16.lt_s i8x16.lt_u i8x16.gt_s i8x16.gt_u i8x16.le_s i8x16.le_u i8x16.ge_s i8x16.ge_u
2d none i16x8.eq i16x8.ne i16x8.lt_s i16x8.lt_u i16x8.gt_s i16x8.gt_u i16x8.le_s i16x8.le_u i16x8.ge_s i16x8.ge_u
37 none i32x4.eq i32x4.ne i32x4.lt_s i32x4.lt_u i32x4.gt_s i32x4.gt_u i32x4.le_s i32x4.le_u i32x4.ge_s i32x4.ge_u
41 none f32x4.eq f32x4.ne f32x4.lt f32x4.gt f32x4.le f32x4.ge
47 none f64x2.eq f64x2.ne f64x2.lt f64x2.gt f64x2.le f64x2.ge
4d none v128.not v128.and v128.andnot v128.or v128.xor v128.bitselect v128.any_true
54 memory_lane v128.load8_lane v128.load16_lane v128.load32_lane v128.load64_lane
58 memory_lane v128.store8_lane v128.store16_lane v128.store32_lane v128.store64_lane
5c memory v128.load32_zero v128.load64_zero
5e none f32x4.demote_f64x2_zero f64x2.promote_low_f32x4
60 none i8x16.abs i8x16.neg i8x16.popcnt i8x16.all_true i8x16.bitmask i8x16.narrow_i16x8_s i8x16.narrow_i16x8_u
67 none f32x4.ceil f32x4.floor f32x4.trunc f32x4.nearest i8x16.shl i8x16.shr_s i8x16.shr_u
6e none i8x16.add i8x16.add_sat_s i8x16.add_sat_u i8x16.sub i8x16.sub_sat_s i8x16.sub_sat_u f64x2.ceil f64x2.floor
76 none i8x16.min_s i8x16.min_u i8x16.max_s i8x16.max_u f64x2.trunc i8x16.avgr_u
7c none i16x8.extadd_pairwise_i8x16_s i16x8.extadd_pairwise_i8x16_u
7e none i32x4.extadd_pairwise_i16x8_s i32x4.extadd_pairwise_i16x8_u
80 none i16x8.abs i16x8.neg i16x8.q15mulr_sat_s i16x8.all_true i16x8.bitmask i16x8.narrow_i32x4_s i16x8.narrow_i32x4_u
87 none i16x8.extend_low_i8x16_s i16x8.extend_high_i8x16_s i16x8.extend_low_i8x16_u i16x8.extend_high_i8x16_u
8b none i16x8.shl i16x8.shr_s i16x8.shr_u i16x8.add i16x8.add_sat_s i16x8.add_sat_u i16x8.sub i16x8.sub_sat_s
93 none i16x8.sub_sat_u f64x2.nearest i16x8.mul i16x8.min_s i16x8.min_u i16x8.max_s i16x8.max_u . i16x8.avgr_u
9c none i16x8.extmul_low_i8x16_s i16x8.extmul_high_i8x16_s i16x8.extmul_low_i8x16_u i16x8.extmul_high_i8x16_u
a0 none i32x4.abs i32x4.neg . i32x4.all_true i32x4.bitmask
a7 none i32x4.extend_low_i16x8_s i32x4.extend_high_i16x8_s i32x4.extend_low_i16x8_u i32x4.extend_high_i16x8_u
ab none i32x4.shl i32x4.shr_s i32x4.shr_u i32x4.add . . i32x4.sub . . . i32x4.mul
b6 none i32x4.min_s i32x4.min_u i32x4.max_s i32x4.max_u i32x4.dot_i16x8_s
bc none i32x4.extmul_low_i16x8_s i32x4.extmul_high_i16x8_s i32x4.extmul_low_i16x8_u i32x4.extmul_high_i16x8_u
c0 none i64x2.abs i64x2.neg . i64x2.all_true i64x2.bitmask
c7 none i64x2.extend_low_i32x4_s i64x2.extend_high_i32x4_s i64x2.extend_low_i32x4_u i64x2.extend_high_i32x4_u
cb none i64x2.shl i64x2.shr_s i64x2.shr_u i64x2.add . . i64x2.sub . . . i64x2.mul
d6 none i64x2.eq i64x2.ne i64x2.lt_s i64x2.gt_s i64x2.le_s i64x2.ge_s
dc none i64x2.extmul_low_i32x4_s i64x2.extmul_high_i32x4_s i64x2.extmul_low_i32x4_u i64x2.extmul_high_i32x4_u
e0 none f32x4.abs f32x4.neg . f32x4.sqrt f32x4.add f32x4.sub f32x4.mul f32x4.div f32x4.min f32x4.max
ea none f32x4.pmin f32x4.pmax f64x2.abs f64x2.neg . f64x2.sqrt f64x2.add f64x2.sub f64x2.mul f64x2.div
f4 none f64x2.min f64x2.max f64x2.pmin f64x2.pmax i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u
fa none f32x4.convert_i32x4_s f32x4.convert_i32x4_u i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero
fe none f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u i8x16.relaxed_swizzle
101 none i32x4.relaxed_trunc_f32x4_s i32x4.relaxed_trunc_f32x4_u
103 none i32x4.relaxed_trunc_f64x2_s_zero i32x4.relaxed_trunc_f64x2_u_zero
105 none f32x4.relaxed_madd f32x4.relaxed_nmadd f64x2.relaxed_madd f64x2.relaxed_nmadd
109 none i8x16.relaxed_laneselect i16x8.relaxed_laneselect i32x4.relaxed_laneselect i64x2.relaxed_laneselect
10d none f32x4.relaxed_min f32x4.relaxed_max f64x2.relaxed_min f64x2.relaxed_max i16x8.relaxed_q15mulr_s
112 none i16x8.relaxed_dot_i8x16_i7x16_s i32x4.relaxed_dot_i8x16_i7x16_add_s
"""

_FE = """
00 memory memory.atomic.notify memory.atomic.wait32 memory.atomic.wait64
03 zero atomic.fence
10 memory i32.atomic.load i64.atomic.load
12 memory i32.atomic.load8_u i32.atomic.load16_u i64.atomic.load8_u i64.atomic.load16_u i64.atomic.load32_u
17 memory i32.atomic.store i64.atomic.store
19 memory i32.atomic.store8 i32.atomic.store16 i64.atomic.store8 i64.atomic.store16 i64.atomic.store32
"""

# From 0x1e of the atomics on: each of these in seven widths.
_READ_MODIFY_WRITE = ("add", "sub", "and", "or", "xor", "xchg", "cmpxchg")
_WIDTHS = ("i32.|", "i64.|", "i32.|8", "i32.|16", "i64.|8", "i64.|16", "i64.|32")


def _table(text: str) -> dict[int, Opcode]:
    table: dict[int, Opcode] = {}
    for line in text.strip().splitlines():
        first, shape, *names = line.split()
        for code, name in enumerate(names, int(first, 16)):
            if name != ".":
                table[code] = Opcode(name, Shape(shape))
    return table


def _atomics() -> dict[int, Opcode]:
    names = [
        f"{width.split('|')[0]}atomic.rmw{width.split('|')[1]}.{verb}{'_u' if width.split('|')[1] else ''}"
        for verb in _READ_MODIFY_WRITE
        for width in _WIDTHS
    ]
    return _table(_FE) | {code: Opcode(name, Shape.MEMORY) for code, name in enumerate(names, 0x1E)}


ONE_BYTE = _table(_ONE_BYTE)
# After one of these bytes an unsigned LEB128 number gives the code.
PREFIXED = {0xFC: _table(_FC), 0xFD: _table(_FD), 0xFE: _atomics()}
