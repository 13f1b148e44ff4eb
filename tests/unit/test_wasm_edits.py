import json
from pathlib import Path
from typing import Any

import pytest
from wasm_modules import FIXTURES, RUNTIMES, code_module, node, refusals, runtime, section

from edgekit.wasm.binary import EditError
from edgekit.wasm.check import check
from edgekit.wasm.code import bodies, instructions
from edgekit.wasm.edits import cut, record
from edgekit.wasm.layout import flag_base
from edgekit.wasm.module import MAGIC, Module, SectionId, parse

# Code indices of the fixture "threads".
INIT, TWICE, UNUSED, TWICE_BY_TABLE, SUM = range(5)
BASE = 6400000 - (3 << 20)

_RUN = """
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
const [path, calls, others, base] = [process.argv[1], ...process.argv.slice(2).map(JSON.parse)];
const memory = new WebAssembly.Memory({ initial: 128, maximum: 256, shared: true });
const module = await WebAssembly.compile(readFileSync(path));
const source = `
  import { parentPort, workerData } from 'node:worker_threads';
  const { module, memory, calls } = workerData;
  const logged = [];
  const log = (number) => logged.push(number);
  const { exports } = new WebAssembly.Instance(module, { env: { memory, log } });
  const results = calls.map(([name, ...given]) => {
    try { return exports[name](...given); } catch (error) { return String(error); }
  });
  parentPort.postMessage({ results, logged });`;
const run = (calls) => new Promise((resolve, reject) => {
  const worker = new Worker(source, { eval: true, workerData: { module, memory, calls } });
  worker.once('message', resolve);
  worker.once('error', reject);
});
const first = await run(calls);
const second = await run(others);
console.log(JSON.stringify({
  first, second,
  flags: [...new Uint8Array(memory.buffer, base, 8)],
  around: [...new Uint8Array(memory.buffer, base - 8, 8)],
  missed: Atomics.load(new Int32Array(memory.buffer), 4) >>> 0,
  data: String.fromCharCode(...new Uint8Array(memory.buffer, 1024, 5)),
}));
"""


def run_threads(module: Module, folder: Path, calls: list[list[Any]], others: list[list[Any]] | None = None) -> Any:
    """Run exports of the fixture "threads", in one thread and then in another with the same memory."""
    path = folder / "module.wasm"
    path.write_bytes(module.to_bytes())
    return node(_RUN, path, json.dumps(calls), json.dumps(others or []), str(BASE))


def threads() -> Module:
    return parse(FIXTURES["threads"])


def indices_stay(before: Module, after: Module) -> bool:
    """Tell whether everything but code, and custom sections, kept its bytes."""
    same = [s for s in SectionId if s not in (SectionId.CODE, SectionId.CUSTOM)]
    return [getattr(before.section(s), "payload", None) for s in same] == [
        getattr(after.section(s), "payload", None) for s in same
    ]


def test_what_runs_is_recorded_and_nothing_else(tmp_path: Path) -> None:
    module = record(threads(), flag_base(threads()))
    run = run_threads(module, tmp_path, [["sum", 3]])
    assert run["first"] == {"results": [6], "logged": [3, 2, 1, 0]}
    flags = [0] * 8
    flags[INIT] = flags[SUM] = 1
    assert (run["flags"], run["around"], run["data"]) == (flags, [0] * 8, "hello")


def test_what_another_thread_runs_is_recorded_in_the_same_memory(tmp_path: Path) -> None:
    module = record(threads(), flag_base(threads()))
    run = run_threads(module, tmp_path, [["sum", 0]], [["twice_by_table", 21]])
    assert run["second"]["results"] == [42]
    flags = [1] * 5 + [0] * 3
    flags[UNUSED] = 0
    assert run["flags"] == flags


def test_a_cut_module_does_what_it_did_and_reports_what_it_lacks(tmp_path: Path) -> None:
    module = cut(threads(), {INIT, SUM, TWICE_BY_TABLE, TWICE}, 16)
    assert indices_stay(threads(), module)
    kept = run_threads(module, tmp_path, [["sum", 3], ["twice_by_table", 4]])
    assert (kept["first"]["results"], kept["missed"], kept["data"]) == ([6, 8], 0, "hello")
    missed = run_threads(module, tmp_path, [["sum", 2]], [["unused", 1.5]])
    assert missed["first"]["results"] == [3]
    assert missed["second"]["results"] == ["RuntimeError: unreachable"]
    assert missed["missed"] == UNUSED + 1


def test_a_function_missed_through_a_table_is_reported_under_the_number_it_was_given(tmp_path: Path) -> None:
    module = cut(threads(), {INIT, SUM, TWICE_BY_TABLE}, 16, ids={TWICE: 2**32 - 2, UNUSED: 7})
    run = run_threads(module, tmp_path, [["twice_by_table", 1]])
    assert (run["first"]["results"], run["missed"]) == (["RuntimeError: unreachable"], 2**32 - 2)


def test_equal_numbers_make_equal_stubs_and_others_do_not() -> None:
    own = [body.data for body in bodies(cut(threads(), (), 16))]
    assert len(set(own)) == 5
    shared = [body.data for body in bodies(cut(threads(), (), 16, ids=dict.fromkeys(range(5), 9)))]
    assert len(set(shared)) == 1
    stub = [one[1:] for one in instructions(bodies(cut(threads(), (), 16))[UNUSED])]
    assert stub == [
        ("i32.const", (16,)),
        ("i32.const", (0,)),
        ("i32.const", (UNUSED + 1,)),
        ("i32.atomic.rmw.cmpxchg", (2, 0, 0)),
        ("drop", ()),
        ("unreachable", ()),
        ("end", ()),
    ]


def test_to_keep_all_is_to_change_nothing() -> None:
    for name, k in (("threads", 5), ("stack_first", 2), ("memory64", 2)):
        assert cut(parse(FIXTURES[name]), range(k), 16).to_bytes() == FIXTURES[name]


def test_kept_bodies_keep_a_padded_size() -> None:
    padded = b"\1\0\1\x82\x80\0\0\x0b".replace(b"\1\0\1", b"\2")  # two bodies; the first one's size takes 3 bytes
    code = padded + b"\2\0\x0b"
    memory = section(5, "01 00 01")
    module = parse(MAGIC + section(1, "01 60 00 00") + section(3, "02 00 00") + memory + section(10, code))
    after = cut(module, {0}, 16)
    assert bodies(after)[0].size == b"\x82\x80\0"
    assert bodies(after)[1].data != bodies(module)[1].data
    assert cut(module, {0, 1}, 16).to_bytes() == module.to_bytes()


_INSTANTIATE = """
import { readFileSync } from 'node:fs';
const results = [];
for (const path of process.argv.slice(1)) {
  const { instance } = await WebAssembly.instantiate(readFileSync(path));
  const read = (at, length) => [...new Uint8Array(instance.exports.memory.buffer, at, length)];
  let result;
  try { result = instance.exports.id(41) } catch (error) { result = String(error) }
  results.push([result, read(5242880 - (3 << 20), 2), read(16, 4)]);
}
console.log(JSON.stringify(results));
"""


def test_modules_with_active_data_and_with_wide_addresses_are_edited_too(tmp_path: Path) -> None:
    paths = []
    for name, base in (("stack_first", None), ("memory64", 5242880 - (3 << 20))):
        module = parse(FIXTURES[name])
        for number, edited in enumerate(
            (record(module, flag_base(module) if base is None else base), cut(module, {0}, 16), cut(module, {1}, 16))
        ):
            check(edited)
            assert indices_stay(module, edited)
            paths.append(tmp_path / f"{name}{number}.wasm")
            paths[-1].write_bytes(edited.to_bytes())
    recorded, kept, missed = [41, [1, 0], [0] * 4], [41, [0, 0], [0] * 4], ["RuntimeError: unreachable", [0, 0]]
    assert node(_INSTANTIATE, *paths) == [recorded, kept, [*missed, [1, 0, 0, 0]]] * 2


@pytest.mark.parametrize("name", RUNTIMES)
def test_the_real_runtimes_are_sound_after_both_edits(name: str, tmp_path: Path) -> None:
    module = parse(runtime(name))
    count = len(bodies(module))
    recorded = record(module, flag_base(module))
    shared = dict.fromkeys(range(count), 1)
    cut_down = cut(module.without_custom(), range(0, count, 3), 16, ids=shared)
    assert indices_stay(module, recorded) and indices_stay(module, cut_down)
    assert len(cut_down.to_bytes()) < len(module.to_bytes()) * 0.6
    assert [s.offset for s in parse(recorded.to_bytes()).sections] == [s.offset for s in recorded.sections]
    for k, (body, now) in enumerate(zip(bodies(module), bodies(recorded), strict=True)):
        start = body.locals_bytes()
        assert now.data[:start] == body.data[:start]
        assert now.data.endswith(body.data[start:]) and len(now.data) > len(body.data), k
    assert refusals([recorded.to_bytes(), cut_down.to_bytes()], tmp_path) == [None, None]


WRONG_CUTS = {
    "an address between words": ({"miss_address": 18}, "not a multiple of 4"),
    "an address in the data": ({"miss_address": 1024}, "does not lie below all data, which begins at 1024"),
    "an address over the data": ({"miss_address": 4096}, "does not lie below all data"),
    "an address past the memory": ({"miss_address": 128 * 65536}, "not all inside the memory"),
    "an address under it": ({"miss_address": -4}, "not all inside the memory"),
    "a function that is not there": ({"keep": [0, 5]}, "no function with code index 5 to keep; the module defines 5"),
    "a function before the first": ({"keep": [-1]}, "no function with code index -1"),
    "a function without a number": ({"ids": {1: 1, 2: 2, 3: 3}}, "code index 4 has no number"),
    "a number that means no miss": ({"ids": dict.fromkeys(range(5), 0)}, "code index 1 has no number"),
    "a number over 32 bits": ({"ids": dict.fromkeys(range(5), 2**32)}, "code index 1 has no number"),
}


@pytest.mark.parametrize(("given", "message"), WRONG_CUTS.values(), ids=WRONG_CUTS.keys())
def test_a_cut_that_is_not_safe_is_refused(given: dict[str, Any], message: str) -> None:
    cut(threads(), [0], 1020)
    with pytest.raises(EditError, match=message):
        cut(threads(), **{"keep": [0], "miss_address": 16, **given})


def test_a_module_without_a_memory_and_flags_outside_of_it_are_refused() -> None:
    with pytest.raises(EditError, match="has no memory"):
        cut(parse(code_module(b"\0\x0b")), (), 16)
    with pytest.raises(EditError, match="has no memory"):
        record(parse(code_module(b"\0\x0b")), 16)
    record(threads(), 128 * 65536 - 5)
    for base in (128 * 65536 - 4, -1):
        with pytest.raises(EditError, match="not all inside the memory"):
            record(threads(), base)


def test_flags_that_would_change_data_are_refused() -> None:
    assert record(threads(), 1019) and record(threads(), 2000)
    for base in (1020, 1025, 1103, 1999):
        with pytest.raises(EditError, match=f"{base} to {base + 5} are not free of data"):
            record(threads(), base)
