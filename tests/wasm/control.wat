;; Control flow: blocks of every type, branches, tail calls, and both forms of exceptions.
(module
  (type $pair (func (param i32 i64) (result i64 i32)))
  (tag $number (param i32))
  (tag $empty)
  (table $table 2 funcref)
  (elem (i32.const 0) $swap $blocks)

  (func $swap (type $pair)
    local.get 1
    local.get 0)

  (func $blocks (export "blocks") (param $x i32) (result i32)
    (local f32 f32 f64) (local $v v128) (local funcref externref)
    block
      nop
      local.get $v
      local.set $v
      local.get $x
      if
        unreachable
      end
    end
    block (result i32)
      local.get $x
      loop (param i32) (result i32)
        local.tee $x
        i32.eqz
        if (result i32)
          i32.const 1
        else
          i32.const 2
        end
      end
    end
    i64.const -9223372036854775808
    block (type $pair)
      call $swap
    end
    drop
    i32.wrap_i64
    block $a
      block $b
        block $c
          local.get $x
          br_table $a $b $c $a
        end
        br $a
      end
      local.get $x
      br_if $a
      local.get $x
      return
    end
    local.get $x
    i32.const 0
    select
    i32.const 5
    i32.const 0
    select (result i32)
    drop
    local.get $x)

  (func $tail (export "tail") (param i32 i64) (result i64 i32)
    local.get 0
    local.get 1
    local.get 0
    if (param i32 i64) (result i32 i64)
      return_call $swap
    end
    i32.const 0
    return_call_indirect (type $pair))

  (func $indirect (export "indirect") (param i32 i64) (result i64 i32)
    local.get 0
    local.get 1
    i32.const 0
    call_indirect (type $pair))

  (func $legacy (export "legacy") (param i32) (result i32)
    try (result i32)
      local.get 0
      throw $number
    catch $number
    catch $empty
      i32.const 7
    catch_all
      i32.const 8
    end
    try
      try
        throw $empty
      delegate 0
    catch_all
      try
        rethrow 1
      catch_all
      end
    end)

  (func $modern (param i32) (result i32)
    block $number_caught (result i32)
      block $all (result exnref)
        block $both (result i32 exnref)
          block $just
            try_table (catch $number $number_caught) (catch_ref $number $both) (catch_all $just) (catch_all_ref $all)
              local.get 0
              throw $number
            end
          end
          i32.const 9
          return
        end
        throw_ref
      end
      throw_ref
    end))
