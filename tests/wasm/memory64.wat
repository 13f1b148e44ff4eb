;; Addresses of 64 bits, a second memory.
(module
  (memory (export "memory") i64 100)
  (memory $second 1)
  (global $stack_pointer (mut i64) (i64.const 5242880))
  (data (memory 0) (i64.const 5300000) "first")
  (func (export "id") (param i32) (result i32)
    local.get 0)
  (func (export "peek") (param i64) (result i32)
    local.get 0
    i32.load8_u offset=8589934592
    i32.const 0
    i32.load8_u $second offset=2
    i32.add))
