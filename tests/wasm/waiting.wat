;; One function waits for another thread, one calls it in a branch, one does neither.
(module
  (memory 1 1 shared)
  (func $waits (param $x i32)
    (if (local.get $x)
      (then (drop (memory.atomic.wait32 (i32.const 64) (i32.const 0) (i64.const -1))))))
  (func $calls (param $x i32)
    (if (local.get $x)
      (then (call $waits (local.get $x)))
      (else (i32.store (i32.const 128) (i32.const 2)))))
  (func $plain (param $x i32)
    (if (local.get $x)
      (then (i32.store (i32.const 128) (i32.const 2))))))
