;; Every instruction but for control flow, one a line. After unreachable any operands are right.
(module
  (type $none (func))
  (import "env" "global" (global (mut i32)))
  (import "env" "memory" (memory 1 1 shared))
  (table 1 funcref)
  (data "passive")
  (elem funcref (ref.null func))
  (func $called (param i32))
  (elem declare func $called)
  (func $references_tables_globals_calls (param i32)
    unreachable
    call 0
    unreachable
    call_indirect (type 0)
    unreachable
    return_call 0
    unreachable
    return_call_indirect (type 0)
    unreachable
    global.get 0
    unreachable
    global.set 0
    unreachable
    table.get 0
    unreachable
    table.set 0
    unreachable
    ref.null func
    unreachable
    ref.is_null
    unreachable
    ref.func 0
    unreachable)
  (func $memory (param i32)
    unreachable
    i32.load offset=300
    unreachable
    i64.load offset=300
    unreachable
    f32.load offset=300
    unreachable
    f64.load offset=300
    unreachable
    i32.load8_s offset=300
    unreachable
    i32.load8_u offset=300
    unreachable
    i32.load16_s offset=300
    unreachable
    i32.load16_u offset=300
    unreachable
    i64.load8_s offset=300
    unreachable
    i64.load8_u offset=300
    unreachable
    i64.load16_s offset=300
    unreachable
    i64.load16_u offset=300
    unreachable
    i64.load32_s offset=300
    unreachable
    i64.load32_u offset=300
    unreachable
    i32.store offset=300
    unreachable
    i64.store offset=300
    unreachable
    f32.store offset=300
    unreachable
    f64.store offset=300
    unreachable
    i32.store8 offset=300
    unreachable
    i32.store16 offset=300
    unreachable
    i64.store8 offset=300
    unreachable
    i64.store16 offset=300
    unreachable
    i64.store32 offset=300
    unreachable
    memory.size
    unreachable
    memory.grow
    unreachable)
  (func $numbers (param i32)
    unreachable
    i32.const -1
    unreachable
    i64.const -1
    unreachable
    f32.const 1.5
    unreachable
    f64.const -0x1p+3
    unreachable
    i32.eqz
    unreachable
    i32.eq
    unreachable
    i32.ne
    unreachable
    i32.lt_s
    unreachable
    i32.lt_u
    unreachable
    i32.gt_s
    unreachable
    i32.gt_u
    unreachable
    i32.le_s
    unreachable
    i32.le_u
    unreachable
    i32.ge_s
    unreachable
    i32.ge_u
    unreachable
    i64.eqz
    unreachable
    i64.eq
    unreachable
    i64.ne
    unreachable
    i64.lt_s
    unreachable
    i64.lt_u
    unreachable
    i64.gt_s
    unreachable
    i64.gt_u
    unreachable
    i64.le_s
    unreachable
    i64.le_u
    unreachable
    i64.ge_s
    unreachable
    i64.ge_u
    unreachable
    f32.eq
    unreachable
    f32.ne
    unreachable
    f32.lt
    unreachable
    f32.gt
    unreachable
    f32.le
    unreachable
    f32.ge
    unreachable
    f64.eq
    unreachable
    f64.ne
    unreachable
    f64.lt
    unreachable
    f64.gt
    unreachable
    f64.le
    unreachable
    f64.ge
    unreachable
    i32.clz
    unreachable
    i32.ctz
    unreachable
    i32.popcnt
    unreachable
    i32.add
    unreachable
    i32.sub
    unreachable
    i32.mul
    unreachable
    i32.div_s
    unreachable
    i32.div_u
    unreachable
    i32.rem_s
    unreachable
    i32.rem_u
    unreachable
    i32.and
    unreachable
    i32.or
    unreachable
    i32.xor
    unreachable
    i32.shl
    unreachable
    i32.shr_s
    unreachable
    i32.shr_u
    unreachable
    i32.rotl
    unreachable
    i32.rotr
    unreachable
    i64.clz
    unreachable
    i64.ctz
    unreachable
    i64.popcnt
    unreachable
    i64.add
    unreachable
    i64.sub
    unreachable
    i64.mul
    unreachable
    i64.div_s
    unreachable
    i64.div_u
    unreachable
    i64.rem_s
    unreachable
    i64.rem_u
    unreachable
    i64.and
    unreachable
    i64.or
    unreachable
    i64.xor
    unreachable
    i64.shl
    unreachable
    i64.shr_s
    unreachable
    i64.shr_u
    unreachable
    i64.rotl
    unreachable
    i64.rotr
    unreachable
    f32.abs
    unreachable
    f32.neg
    unreachable
    f32.ceil
    unreachable
    f32.floor
    unreachable
    f32.trunc
    unreachable
    f32.nearest
    unreachable
    f32.sqrt
    unreachable
    f32.add
    unreachable
    f32.sub
    unreachable
    f32.mul
    unreachable
    f32.div
    unreachable
    f32.min
    unreachable
    f32.max
    unreachable
    f32.copysign
    unreachable
    f64.abs
    unreachable
    f64.neg
    unreachable
    f64.ceil
    unreachable
    f64.floor
    unreachable
    f64.trunc
    unreachable
    f64.nearest
    unreachable
    f64.sqrt
    unreachable
    f64.add
    unreachable
    f64.sub
    unreachable
    f64.mul
    unreachable
    f64.div
    unreachable
    f64.min
    unreachable
    f64.max
    unreachable
    f64.copysign
    unreachable
    i32.wrap_i64
    unreachable
    i32.trunc_f32_s
    unreachable
    i32.trunc_f32_u
    unreachable
    i32.trunc_f64_s
    unreachable
    i32.trunc_f64_u
    unreachable
    i64.extend_i32_s
    unreachable
    i64.extend_i32_u
    unreachable
    i64.trunc_f32_s
    unreachable
    i64.trunc_f32_u
    unreachable
    i64.trunc_f64_s
    unreachable
    i64.trunc_f64_u
    unreachable
    f32.convert_i32_s
    unreachable
    f32.convert_i32_u
    unreachable
    f32.convert_i64_s
    unreachable
    f32.convert_i64_u
    unreachable
    f32.demote_f64
    unreachable
    f64.convert_i32_s
    unreachable
    f64.convert_i32_u
    unreachable
    f64.convert_i64_s
    unreachable
    f64.convert_i64_u
    unreachable
    f64.promote_f32
    unreachable
    i32.reinterpret_f32
    unreachable
    i64.reinterpret_f64
    unreachable
    f32.reinterpret_i32
    unreachable
    f64.reinterpret_i64
    unreachable)
  (func $sign_extension (param i32)
    unreachable
    i32.extend8_s
    unreachable
    i32.extend16_s
    unreachable
    i64.extend8_s
    unreachable
    i64.extend16_s
    unreachable
    i64.extend32_s
    unreachable)
  (func $saturating_conversions (param i32)
    unreachable
    i32.trunc_sat_f32_s
    unreachable
    i32.trunc_sat_f32_u
    unreachable
    i32.trunc_sat_f64_s
    unreachable
    i32.trunc_sat_f64_u
    unreachable
    i64.trunc_sat_f32_s
    unreachable
    i64.trunc_sat_f32_u
    unreachable
    i64.trunc_sat_f64_s
    unreachable
    i64.trunc_sat_f64_u
    unreachable)
  (func $bulk_memory_and_tables (param i32)
    unreachable
    memory.init 0
    unreachable
    data.drop 0
    unreachable
    memory.copy
    unreachable
    memory.fill
    unreachable
    table.init 0
    unreachable
    elem.drop 0
    unreachable
    table.copy 0 0
    unreachable
    table.grow 0
    unreachable
    table.size 0
    unreachable
    table.fill 0
    unreachable)
  (func $simd (param i32)
    unreachable
    v128.load offset=300
    unreachable
    v128.load8x8_s offset=300
    unreachable
    v128.load8x8_u offset=300
    unreachable
    v128.load16x4_s offset=300
    unreachable
    v128.load16x4_u offset=300
    unreachable
    v128.load32x2_s offset=300
    unreachable
    v128.load32x2_u offset=300
    unreachable
    v128.load8_splat offset=300
    unreachable
    v128.load16_splat offset=300
    unreachable
    v128.load32_splat offset=300
    unreachable
    v128.load64_splat offset=300
    unreachable
    v128.store offset=300
    unreachable
    v128.const i32x4 1 2 3 4
    unreachable
    i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 31
    unreachable
    i8x16.swizzle
    unreachable
    i8x16.splat
    unreachable
    i16x8.splat
    unreachable
    i32x4.splat
    unreachable
    i64x2.splat
    unreachable
    f32x4.splat
    unreachable
    f64x2.splat
    unreachable
    i8x16.extract_lane_s 1
    unreachable
    i8x16.extract_lane_u 1
    unreachable
    i8x16.replace_lane 1
    unreachable
    i16x8.extract_lane_s 1
    unreachable
    i16x8.extract_lane_u 1
    unreachable
    i16x8.replace_lane 1
    unreachable
    i32x4.extract_lane 1
    unreachable
    i32x4.replace_lane 1
    unreachable
    i64x2.extract_lane 1
    unreachable
    i64x2.replace_lane 1
    unreachable
    f32x4.extract_lane 1
    unreachable
    f32x4.replace_lane 1
    unreachable
    f64x2.extract_lane 1
    unreachable
    f64x2.replace_lane 1
    unreachable
    i8x16.eq
    unreachable
    i8x16.ne
    unreachable
    i8x16.lt_s
    unreachable
    i8x16.lt_u
    unreachable
    i8x16.gt_s
    unreachable
    i8x16.gt_u
    unreachable
    i8x16.le_s
    unreachable
    i8x16.le_u
    unreachable
    i8x16.ge_s
    unreachable
    i8x16.ge_u
    unreachable
    i16x8.eq
    unreachable
    i16x8.ne
    unreachable
    i16x8.lt_s
    unreachable
    i16x8.lt_u
    unreachable
    i16x8.gt_s
    unreachable
    i16x8.gt_u
    unreachable
    i16x8.le_s
    unreachable
    i16x8.le_u
    unreachable
    i16x8.ge_s
    unreachable
    i16x8.ge_u
    unreachable
    i32x4.eq
    unreachable
    i32x4.ne
    unreachable
    i32x4.lt_s
    unreachable
    i32x4.lt_u
    unreachable
    i32x4.gt_s
    unreachable
    i32x4.gt_u
    unreachable
    i32x4.le_s
    unreachable
    i32x4.le_u
    unreachable
    i32x4.ge_s
    unreachable
    i32x4.ge_u
    unreachable
    f32x4.eq
    unreachable
    f32x4.ne
    unreachable
    f32x4.lt
    unreachable
    f32x4.gt
    unreachable
    f32x4.le
    unreachable
    f32x4.ge
    unreachable
    f64x2.eq
    unreachable
    f64x2.ne
    unreachable
    f64x2.lt
    unreachable
    f64x2.gt
    unreachable
    f64x2.le
    unreachable
    f64x2.ge
    unreachable
    v128.not
    unreachable
    v128.and
    unreachable
    v128.andnot
    unreachable
    v128.or
    unreachable
    v128.xor
    unreachable
    v128.bitselect
    unreachable
    v128.any_true
    unreachable
    v128.load8_lane offset=300 1
    unreachable
    v128.load16_lane offset=300 1
    unreachable
    v128.load32_lane offset=300 1
    unreachable
    v128.load64_lane offset=300 1
    unreachable
    v128.store8_lane offset=300 1
    unreachable
    v128.store16_lane offset=300 1
    unreachable
    v128.store32_lane offset=300 1
    unreachable
    v128.store64_lane offset=300 1
    unreachable
    v128.load32_zero offset=300
    unreachable
    v128.load64_zero offset=300
    unreachable
    f32x4.demote_f64x2_zero
    unreachable
    f64x2.promote_low_f32x4
    unreachable
    i8x16.abs
    unreachable
    i8x16.neg
    unreachable
    i8x16.popcnt
    unreachable
    i8x16.all_true
    unreachable
    i8x16.bitmask
    unreachable
    i8x16.narrow_i16x8_s
    unreachable
    i8x16.narrow_i16x8_u
    unreachable
    f32x4.ceil
    unreachable
    f32x4.floor
    unreachable
    f32x4.trunc
    unreachable
    f32x4.nearest
    unreachable
    i8x16.shl
    unreachable
    i8x16.shr_s
    unreachable
    i8x16.shr_u
    unreachable
    i8x16.add
    unreachable
    i8x16.add_sat_s
    unreachable
    i8x16.add_sat_u
    unreachable
    i8x16.sub
    unreachable
    i8x16.sub_sat_s
    unreachable
    i8x16.sub_sat_u
    unreachable
    f64x2.ceil
    unreachable
    f64x2.floor
    unreachable
    i8x16.min_s
    unreachable
    i8x16.min_u
    unreachable
    i8x16.max_s
    unreachable
    i8x16.max_u
    unreachable
    f64x2.trunc
    unreachable
    i8x16.avgr_u
    unreachable
    i16x8.extadd_pairwise_i8x16_s
    unreachable
    i16x8.extadd_pairwise_i8x16_u
    unreachable
    i32x4.extadd_pairwise_i16x8_s
    unreachable
    i32x4.extadd_pairwise_i16x8_u
    unreachable
    i16x8.abs
    unreachable
    i16x8.neg
    unreachable
    i16x8.q15mulr_sat_s
    unreachable
    i16x8.all_true
    unreachable
    i16x8.bitmask
    unreachable
    i16x8.narrow_i32x4_s
    unreachable
    i16x8.narrow_i32x4_u
    unreachable
    i16x8.extend_low_i8x16_s
    unreachable
    i16x8.extend_high_i8x16_s
    unreachable
    i16x8.extend_low_i8x16_u
    unreachable
    i16x8.extend_high_i8x16_u
    unreachable
    i16x8.shl
    unreachable
    i16x8.shr_s
    unreachable
    i16x8.shr_u
    unreachable
    i16x8.add
    unreachable
    i16x8.add_sat_s
    unreachable
    i16x8.add_sat_u
    unreachable
    i16x8.sub
    unreachable
    i16x8.sub_sat_s
    unreachable
    i16x8.sub_sat_u
    unreachable
    f64x2.nearest
    unreachable
    i16x8.mul
    unreachable
    i16x8.min_s
    unreachable
    i16x8.min_u
    unreachable
    i16x8.max_s
    unreachable
    i16x8.max_u
    unreachable
    i16x8.avgr_u
    unreachable
    i16x8.extmul_low_i8x16_s
    unreachable
    i16x8.extmul_high_i8x16_s
    unreachable
    i16x8.extmul_low_i8x16_u
    unreachable
    i16x8.extmul_high_i8x16_u
    unreachable
    i32x4.abs
    unreachable
    i32x4.neg
    unreachable
    i32x4.all_true
    unreachable
    i32x4.bitmask
    unreachable
    i32x4.extend_low_i16x8_s
    unreachable
    i32x4.extend_high_i16x8_s
    unreachable
    i32x4.extend_low_i16x8_u
    unreachable
    i32x4.extend_high_i16x8_u
    unreachable
    i32x4.shl
    unreachable
    i32x4.shr_s
    unreachable
    i32x4.shr_u
    unreachable
    i32x4.add
    unreachable
    i32x4.sub
    unreachable
    i32x4.mul
    unreachable
    i32x4.min_s
    unreachable
    i32x4.min_u
    unreachable
    i32x4.max_s
    unreachable
    i32x4.max_u
    unreachable
    i32x4.dot_i16x8_s
    unreachable
    i32x4.extmul_low_i16x8_s
    unreachable
    i32x4.extmul_high_i16x8_s
    unreachable
    i32x4.extmul_low_i16x8_u
    unreachable
    i32x4.extmul_high_i16x8_u
    unreachable
    i64x2.abs
    unreachable
    i64x2.neg
    unreachable
    i64x2.all_true
    unreachable
    i64x2.bitmask
    unreachable
    i64x2.extend_low_i32x4_s
    unreachable
    i64x2.extend_high_i32x4_s
    unreachable
    i64x2.extend_low_i32x4_u
    unreachable
    i64x2.extend_high_i32x4_u
    unreachable
    i64x2.shl
    unreachable
    i64x2.shr_s
    unreachable
    i64x2.shr_u
    unreachable
    i64x2.add
    unreachable
    i64x2.sub
    unreachable
    i64x2.mul
    unreachable
    i64x2.eq
    unreachable
    i64x2.ne
    unreachable
    i64x2.lt_s
    unreachable
    i64x2.gt_s
    unreachable
    i64x2.le_s
    unreachable
    i64x2.ge_s
    unreachable
    i64x2.extmul_low_i32x4_s
    unreachable
    i64x2.extmul_high_i32x4_s
    unreachable
    i64x2.extmul_low_i32x4_u
    unreachable
    i64x2.extmul_high_i32x4_u
    unreachable
    f32x4.abs
    unreachable
    f32x4.neg
    unreachable
    f32x4.sqrt
    unreachable
    f32x4.add
    unreachable
    f32x4.sub
    unreachable
    f32x4.mul
    unreachable
    f32x4.div
    unreachable
    f32x4.min
    unreachable
    f32x4.max
    unreachable
    f32x4.pmin
    unreachable
    f32x4.pmax
    unreachable
    f64x2.abs
    unreachable
    f64x2.neg
    unreachable
    f64x2.sqrt
    unreachable
    f64x2.add
    unreachable
    f64x2.sub
    unreachable
    f64x2.mul
    unreachable
    f64x2.div
    unreachable
    f64x2.min
    unreachable
    f64x2.max
    unreachable
    f64x2.pmin
    unreachable
    f64x2.pmax
    unreachable
    i32x4.trunc_sat_f32x4_s
    unreachable
    i32x4.trunc_sat_f32x4_u
    unreachable
    f32x4.convert_i32x4_s
    unreachable
    f32x4.convert_i32x4_u
    unreachable
    i32x4.trunc_sat_f64x2_s_zero
    unreachable
    i32x4.trunc_sat_f64x2_u_zero
    unreachable
    f64x2.convert_low_i32x4_s
    unreachable
    f64x2.convert_low_i32x4_u
    unreachable)
  (func $relaxed_simd (param i32)
    unreachable
    i8x16.relaxed_swizzle
    unreachable
    i32x4.relaxed_trunc_f32x4_s
    unreachable
    i32x4.relaxed_trunc_f32x4_u
    unreachable
    i32x4.relaxed_trunc_f64x2_s_zero
    unreachable
    i32x4.relaxed_trunc_f64x2_u_zero
    unreachable
    f32x4.relaxed_madd
    unreachable
    f32x4.relaxed_nmadd
    unreachable
    f64x2.relaxed_madd
    unreachable
    f64x2.relaxed_nmadd
    unreachable
    i8x16.relaxed_laneselect
    unreachable
    i16x8.relaxed_laneselect
    unreachable
    i32x4.relaxed_laneselect
    unreachable
    i64x2.relaxed_laneselect
    unreachable
    f32x4.relaxed_min
    unreachable
    f32x4.relaxed_max
    unreachable
    f64x2.relaxed_min
    unreachable
    f64x2.relaxed_max
    unreachable
    i16x8.relaxed_q15mulr_s
    unreachable
    i16x8.relaxed_dot_i8x16_i7x16_s
    unreachable
    i32x4.relaxed_dot_i8x16_i7x16_add_s
    unreachable)
  (func $atomics (param i32)
    unreachable
    memory.atomic.notify offset=300
    unreachable
    memory.atomic.wait32 offset=300
    unreachable
    memory.atomic.wait64 offset=300
    unreachable
    atomic.fence
    unreachable
    i32.atomic.load offset=300
    unreachable
    i64.atomic.load offset=300
    unreachable
    i32.atomic.load8_u offset=300
    unreachable
    i32.atomic.load16_u offset=300
    unreachable
    i64.atomic.load8_u offset=300
    unreachable
    i64.atomic.load16_u offset=300
    unreachable
    i64.atomic.load32_u offset=300
    unreachable
    i32.atomic.store offset=300
    unreachable
    i64.atomic.store offset=300
    unreachable
    i32.atomic.store8 offset=300
    unreachable
    i32.atomic.store16 offset=300
    unreachable
    i64.atomic.store8 offset=300
    unreachable
    i64.atomic.store16 offset=300
    unreachable
    i64.atomic.store32 offset=300
    unreachable
    i32.atomic.rmw.add offset=300
    unreachable
    i64.atomic.rmw.add offset=300
    unreachable
    i32.atomic.rmw8.add_u offset=300
    unreachable
    i32.atomic.rmw16.add_u offset=300
    unreachable
    i64.atomic.rmw8.add_u offset=300
    unreachable
    i64.atomic.rmw16.add_u offset=300
    unreachable
    i64.atomic.rmw32.add_u offset=300
    unreachable
    i32.atomic.rmw.sub offset=300
    unreachable
    i64.atomic.rmw.sub offset=300
    unreachable
    i32.atomic.rmw8.sub_u offset=300
    unreachable
    i32.atomic.rmw16.sub_u offset=300
    unreachable
    i64.atomic.rmw8.sub_u offset=300
    unreachable
    i64.atomic.rmw16.sub_u offset=300
    unreachable
    i64.atomic.rmw32.sub_u offset=300
    unreachable
    i32.atomic.rmw.and offset=300
    unreachable
    i64.atomic.rmw.and offset=300
    unreachable
    i32.atomic.rmw8.and_u offset=300
    unreachable
    i32.atomic.rmw16.and_u offset=300
    unreachable
    i64.atomic.rmw8.and_u offset=300
    unreachable
    i64.atomic.rmw16.and_u offset=300
    unreachable
    i64.atomic.rmw32.and_u offset=300
    unreachable
    i32.atomic.rmw.or offset=300
    unreachable
    i64.atomic.rmw.or offset=300
    unreachable
    i32.atomic.rmw8.or_u offset=300
    unreachable
    i32.atomic.rmw16.or_u offset=300
    unreachable
    i64.atomic.rmw8.or_u offset=300
    unreachable
    i64.atomic.rmw16.or_u offset=300
    unreachable
    i64.atomic.rmw32.or_u offset=300
    unreachable
    i32.atomic.rmw.xor offset=300
    unreachable
    i64.atomic.rmw.xor offset=300
    unreachable
    i32.atomic.rmw8.xor_u offset=300
    unreachable
    i32.atomic.rmw16.xor_u offset=300
    unreachable
    i64.atomic.rmw8.xor_u offset=300
    unreachable
    i64.atomic.rmw16.xor_u offset=300
    unreachable
    i64.atomic.rmw32.xor_u offset=300
    unreachable
    i32.atomic.rmw.xchg offset=300
    unreachable
    i64.atomic.rmw.xchg offset=300
    unreachable
    i32.atomic.rmw8.xchg_u offset=300
    unreachable
    i32.atomic.rmw16.xchg_u offset=300
    unreachable
    i64.atomic.rmw8.xchg_u offset=300
    unreachable
    i64.atomic.rmw16.xchg_u offset=300
    unreachable
    i64.atomic.rmw32.xchg_u offset=300
    unreachable
    i32.atomic.rmw.cmpxchg offset=300
    unreachable
    i64.atomic.rmw.cmpxchg offset=300
    unreachable
    i32.atomic.rmw8.cmpxchg_u offset=300
    unreachable
    i32.atomic.rmw16.cmpxchg_u offset=300
    unreachable
    i64.atomic.rmw8.cmpxchg_u offset=300
    unreachable
    i64.atomic.rmw16.cmpxchg_u offset=300
    unreachable
    i64.atomic.rmw32.cmpxchg_u offset=300
    unreachable))
