"""Which kernels a runtime registers, and what it says where one was left out."""

from pathlib import Path

import models_text
import numpy as np
import ort_in_node
import pytest
from wasm_modules import FIXTURES, MAGIC, RUNTIMES, node, refusals, runtime, section

from edgekit.runtime import kernels
from edgekit.runtime.kernels import Kernels
from edgekit.wasm.binary import EditError
from edgekit.wasm.module import parse

# Place in the table of the fixture = code index + 1.
DESCRIBED = """
import { readFileSync } from 'node:fs';
const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[1]), { env: { log() {} } });
console.log(JSON.stringify(Array.from({ length: 10 }, (_, k) => instance.exports.described(k + 1))));
"""
ACOSH = '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Acosh(x) }'


def described(wasm: bytes, folder: Path) -> list[int]:
    """For each place of the fixture's table, the place of what creates the kernel that is described there; or 0."""
    (folder / "m.wasm").write_bytes(wasm)
    said: list[int] = node(DESCRIBED, folder / "m.wasm")
    return said


def test_a_table_that_begins_with_what_describes_none_is_found_with_what_creates_each_kernel() -> None:
    create = {number: 9 + number for number in (1, 2, 3, 4)}
    by_builder = {1: [1], 2: [1], 3: [2], 4: [2], 5: [3], 6: [3], 7: [3, 4], 8: [4], 9: [4]}
    expected = {k: frozenset(create[number] for number in numbers) for k, numbers in by_builder.items()}
    assert kernels.find(parse(FIXTURES["kernels"])) == Kernels(0, expected)


def test_what_is_left_out_describes_none_and_the_others_are_as_before(tmp_path: Path) -> None:
    module = parse(FIXTURES["kernels"])
    found = kernels.find(module)
    assert found is not None
    stock = described(FIXTURES["kernels"], tmp_path)
    assert stock == [0, 11, 11, 12, 12, 13, 13, 13, 14, 14]
    # 10 creates kernels and describes none: it is not touched.
    made = kernels.leave_out(module, found, [2, 9, 10]).to_bytes()
    assert described(made, tmp_path) == [0, 11, 0, 12, 12, 13, 13, 13, 14, 0]
    assert kernels.leave_out(module, found, []).to_bytes() == FIXTURES["kernels"]


@pytest.mark.parametrize("name", ["control", "threads", "texts"])
def test_a_module_without_tables_of_kernels_has_none(name: str) -> None:
    assert kernels.find(parse(FIXTURES[name])) is None


def test_the_twin_where_the_first_of_the_table_does_more_there_is_no_table() -> None:
    # One constant of what describes none is 1 and no longer 0.
    before, after = bytes.fromhex("2000 4100 3602 00"), bytes.fromhex("2000 4101 3602 00")
    assert FIXTURES["kernels"].count(before) == 1
    assert kernels.find(parse(FIXTURES["kernels"].replace(before, after))) is None


def test_data_at_an_unknown_place_are_refused() -> None:
    with pytest.raises(EditError, match="passive data segment 0"):
        kernels.find(parse(MAGIC + section(5, "01 00 01") + section(12, "01") + section(11, "01 01 01 61")))


@pytest.mark.parametrize("name", RUNTIMES)
def test_every_build_has_its_kernels(name: str, tmp_path: Path) -> None:
    module = parse(runtime(name))
    found = kernels.find(module)
    assert found is not None
    assert len(found.builders) > 1_300
    assert found.void not in found.builders
    creating = frozenset[int]().union(*found.builders.values())
    assert len(creating) > 500
    assert not creating & found.builders.keys()
    made = kernels.leave_out(module, found, found.builders).to_bytes()
    assert refusals([made], tmp_path) == [None]


def test_a_runtime_without_kernels_starts_and_names_the_one_that_a_model_lacks(tmp_path: Path) -> None:
    model = models_text.write(ACOSH, tmp_path)
    stock = runtime(ort_in_node.CPU.wasm)
    feeds = {"x": np.array([1, 2], np.float32)}
    assert ort_in_node.answer(stock, model, feeds, tmp_path)["y"] == pytest.approx([0, 1.3169579])
    module = parse(stock)
    found = kernels.find(module)
    assert found is not None
    bare = kernels.leave_out(module, found, found.builders).to_bytes()
    said = ort_in_node.answer(bare, model, feeds, tmp_path)
    assert "Could not find an implementation for Acosh(9)" in said["error"]
