;; Functions whose branches can be told apart by what they do. Data lie above the stack.
(module
  (memory (export "memory") 128)
  (global $stack (mut i32) (i32.const 5242880))
  (tag $thrown (param i32))
  (data (i32.const 5244000) "x")

  ;; 0: an if with a result, and an else in which a block is left early.
  (func (export "choose") (param $x i32) (result i32)
    (if (result i32) (i32.gt_s (local.get $x) (i32.const 0))
      (then (i32.add (local.get $x) (i32.const 100000)))
      (else
        (block $out (result i32)
          (i32.const 7)
          (br_if $out (i32.eqz (local.get $x)))
          (drop)
          (i32.mul (local.get $x) (i32.const -100000))))))

  ;; 1: a value stays on the stack over the end of a block, after which code may not be reached.
  (func (export "after") (param $x i32) (result i32)
    (i32.const 1000)
    (block $skip
      (br_if $skip (i32.eqz (local.get $x)))
      (return (i32.const 5)))
    (i32.add (i32.const 100000)))

  ;; 2: an exception that is caught, or not thrown.
  (func (export "caught") (param $x i32) (result i32)
    try (result i32)
      (if (i32.eq (local.get $x) (i32.const 1)) (then (throw $thrown (i32.const 11))))
      (if (i32.eq (local.get $x) (i32.const 2)) (then (drop (call $deep (i32.const 99999)))))
      (i32.const 3)
    catch $thrown
      (i32.add (i32.const 100000))
    catch_all
      (i32.const 123456)
    end)

  ;; 3: a loop that goes round again.
  (func $deep (export "deep") (param $x i32) (result i32)
    (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (local.get $x)))
      (local.set $x (i32.sub (local.get $x) (i32.const 1)))
      (br_if $again (i32.gt_s (local.get $x) (i32.const 0))))
    (local.get $sum)))
