;; The stack below the data, as wasm-ld's --stack-first lays it: active segments, a memory of the module's own.
(module
  (memory (export "memory") 100)
  (global $stack_pointer (mut i32) (i32.const 5242880))
  (data (i32.const 5242880) "at the stack's top")
  (data (i32.const 5300000) "")
  (func (export "id") (param i32) (result i32)
    local.get 0)
  (func (export "other") (param i64) (result i64)
    local.get 0))
