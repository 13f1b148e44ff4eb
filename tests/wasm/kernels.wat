;; Kernels as onnxruntime registers them: a table of functions, each of which describes a kernel or, the first, none.
(module
  (import "env" "log" (func $log (param i32)))
  (type $describe (func (param i32)))
  (type $create (func (param i32 i32) (result i32)))
  (type $delete (func (param i32 i32)))
  (memory 1)
  (table 32 funcref)
  (elem (i32.const 1) $void $k1 $k2 $k3 $k4 $k5 $k6 $k7 $k8 $k9 $create1 $create2 $create3 $create4 $delete)
  ;; The table, and two runs of places that are none: one too short, one whose first describes a kernel.
  (data (i32.const 1024) "\01\00\00\00\02\00\00\00\03\00\00\00\04\00\00\00\05\00\00\00\06\00\00\00\07\00\00\00\08\00\00\00\09\00\00\00\0a\00\00\00")
  (data (i32.const 1088) "\01\00\00\00\02\00\00\00\03\00\00\00")
  (data (i32.const 1120) "\02\00\00\00\03\00\00\00\04\00\00\00\05\00\00\00\06\00\00\00\07\00\00\00\08\00\00\00\09\00\00\00\0a\00\00\00")

  (func $void (type $describe)
    (i32.store (local.get 0) (i32.const 0))
    (i32.store offset=4 (local.get 0) (i32.const 0)))

  (func $k1 (type $describe)
    (i32.store (local.get 0) (i32.const 11))
    (i32.store offset=8 (local.get 0) (i32.const 15)))

  (func $k2 (type $describe)
    (i32.store (local.get 0) (i32.const 11))
    (i32.store offset=8 (local.get 0) (i32.const 15)))

  (func $k3 (type $describe)
    (i32.store (local.get 0) (i32.const 12))
    (i32.store offset=8 (local.get 0) (i32.const 15)))

  (func $k4 (type $describe)
    (i32.store (local.get 0) (i32.const 12))
    (i32.store offset=8 (local.get 0) (i32.const 15)))

  (func $k5 (type $describe)
    (i32.store (local.get 0) (i32.const 13))
    (i32.store offset=8 (local.get 0) (i32.const 15)))

  (func $k6 (type $describe)
    (i32.store (local.get 0) (i32.const 13))
    (i32.store offset=8 (local.get 0) (i32.const 15)))

  (func $k7 (type $describe)
    (i32.store (local.get 0) (i32.const 13))
    (i32.store offset=4 (local.get 0) (i32.const 14))
    (i32.store offset=8 (local.get 0) (i32.const 15)))

  (func $k8 (type $describe)
    (i32.store (local.get 0) (i32.const 14))
    (i32.store offset=8 (local.get 0) (i32.const 15)))

  (func $k9 (type $describe)
    (i32.store (local.get 0) (i32.const 14))
    (i32.store offset=8 (local.get 0) (i32.const 15)))

  (func $create1 (type $create) (i32.const 1))
  (func $create2 (type $create) (i32.const 2))
  (func $create3 (type $create) (i32.const 3))
  (func $create4 (type $create) (i32.const 4))
  (func $delete (type $delete))

  ;; What the function in this place of the table says of its kernel: the place of what creates it, or 0.
  (func (export "described") (param $place i32) (result i32)
    (call_indirect (type $describe) (i32.const 512) (local.get $place))
    (i32.load (i32.const 512))))
