;; Every section, and every form of its entries that wabt writes.
(module $every_section
  (type $unary (func (param i32) (result i32)))
  (type $many (func (param i32 i64 f32 f64 v128 funcref externref) (result i64 f64)))
  (import "env" "function" (func $imported (type $unary)))
  (import "env" "table" (table $imported_table 1 2 externref))
  (import "env" "memory" (memory $imported_memory 1 2 shared))
  (import "env" "global" (global $imported_global i32))
  (import "env" "mutable" (global $imported_mutable (mut i64)))
  (import "env" "tag" (tag $imported_tag (param i32)))
  (table $functions 10 20 funcref)
  (table $wide i64 1 funcref)
  (memory $own 1)
  (memory $big i64 1 2)
  (tag $own_tag (param i64 f32))
  (global $constant i32 (i32.const -5))
  (global $extended (mut i32) (i32.add (global.get $imported_global) (i32.mul (i32.const 3) (i32.const 4))))
  (global $vector v128 (v128.const i64x2 1 2))
  (global $reference funcref (ref.func $double))
  (global $nothing externref (ref.null extern))
  (global $float f64 (f64.const 0x1.8p+1))
  (export "function" (func $double))
  (export "table" (table $functions))
  (export "memory" (memory $own))
  (export "global" (global $constant))
  (export "tag" (tag $own_tag))
  (export "\c3\a9" (func $imported))
  (start $begin)
  (elem (table $functions) (i32.const 0) func $double $imported)
  (elem func $double)
  (elem declare func $begin)
  (elem (table $functions) (i32.const 2) funcref (ref.func $double) (ref.null func))
  (elem funcref (ref.func $declared_only) (ref.null func))
  (elem declare funcref (ref.func $double))
  (elem (table $imported_table) (i32.const 0) externref (ref.null extern))
  (elem (table $wide) (i64.const 0) func $begin)
  (func $double (type $unary) (local $twice i32)
    local.get 0
    i32.const 2
    i32.mul)
  (func $begin
    ref.func $begin
    drop
    i32.const 0
    i32.const 0
    i32.const 2
    memory.init $own $passive)
  (func $declared_only (type $many)
    local.get 1
    local.get 3)
  (data (memory $imported_memory) (i32.const 8) "active")
  (data $passive "passive")
  (data (i32.add (i32.const 1) (i32.const 2)) "extended")
  (data ""))
