;; Laid out as wasm-ld does for threads: passive data that the start function copies, a shared imported memory,
;; the stack (global 0) between the data and the heap.
(module
  (import "env" "memory" (memory 128 256 shared))
  (import "env" "log" (func $log (param i32)))
  (global $stack_pointer (mut i32) (i32.const 6400000))
  (global $tls_base (mut i32) (i32.const 0))
  (table $table 4 4 funcref)
  (elem (i32.const 1) $twice $unused)
  (data $text "hello")
  (data $more "\01\02\03\04")
  (start $init)
  (export "twice_by_table" (func $twice_by_table))
  (export "sum" (func $sum))
  (export "unused" (func $unused))
  (export "table" (table $table))

  (func $init
    i32.const 2000
    i32.const 0
    i32.const 1
    i32.atomic.rmw.cmpxchg
    if
      return
    end
    i32.const 1024
    i32.const 0
    i32.const 5
    memory.init $text
    i32.const 1100
    global.set $tls_base
    i32.const 1100
    i32.const 0
    i32.const 4
    memory.init $more
    i32.const 1104
    i32.const 0
    i32.const 896
    memory.fill
    data.drop $text
    data.drop $more)

  (func $twice (param i32) (result i32)
    local.get 0
    i32.const 1
    i32.shl)

  (func $unused (param f32) (result f32)
    (local i32 i32 f64)
    local.get 0
    f32.neg)

  (func $twice_by_table (param i32) (result i32)
    local.get 0
    i32.const 1
    call_indirect (param i32) (result i32))

  (func $sum (param i32) (result i32)
    local.get 0
    call $log
    local.get 0
    i32.eqz
    if (result i32)
      i32.const 0
    else
      local.get 0
      local.get 0
      i32.const 1
      i32.sub
      call $sum
      i32.add
    end))
