;; Texts as a C++ compiler lays them out, each between two NULs, and the ways in which code and data refer to them.
(module
  (memory 1)
  (export "memory" (memory 0))
  (data (i32.const 1024) "\00by its first byte\00")
  (data (i32.const 1056) "\00of the scale\00")
  (data (i32.const 1088) "\00only by its end\00")
  (data (i32.const 1120) "\00by a pointer\00")
  (data (i32.const 1152) "\61\04\00\00")
  (data (i32.const 1184) "\00first row\00second row\00")
  (data (i32.const 1216) "\00abc\00")
  (data (i32.const 1248) "\00by one half\00by the other half\00")
  (data (i32.const 1312) "\00by a vector\00")
  (data (i32.const 1344) "\00by an offset\00")
  (data (i32.const 1376) "\00cut in two")
  (data (i32.const 1387) " segments\00")
  (data (i32.const 1408) "\00by an odd pointer\00")
  (data (i32.const 1442) "\81\05\00\00")
  (data (i32.const 1472) "\00by nobody at all\00")

  (func $first
    (drop (i32.const 1025))
    (drop (i32.const 1057))
    (drop (i32.const 1121))
    (drop (i32.const 1185))
    (drop (i32.const 1217))
    (drop (i32.const 1377))
    (drop (i32.const 1409)))

  (func $inside
    (drop (i32.const 1064))
    (drop (i32.const 1102))
    (drop (i32.const 1042)))

  (func $wide
    (drop (i64.const 0x4ed000004e1))
    (drop (v128.const i32x4 0 0 1313 0))
    (drop (i32.load offset=1345 (i32.const 0)))))
