"""Binaryen's wasm-opt on fixtures and on what edgekit writes; what it refuses is said in its words."""

from pathlib import Path
from typing import Any

import pytest
from wasm_modules import FIXTURES, MAGIC, code_module, node, refusals

from edgekit.runtime import binaryen, fetch
from edgekit.runtime.binaryen import BinaryenError
from edgekit.wasm.code import bodies
from edgekit.wasm.edits import cut
from edgekit.wasm.module import parse

EXPORTS = """
import { readFileSync } from 'node:fs';
const module = new WebAssembly.Module(readFileSync(process.argv[1]));
const [imports, exports] = [WebAssembly.Module.imports(module), WebAssembly.Module.exports(module)];
console.log(JSON.stringify({ imports, exports }));
"""


@pytest.fixture(scope="module")
def program() -> Path:
    return fetch.optimizer()


def interface(wasm: bytes, folder: Path) -> Any:
    (folder / "m.wasm").write_bytes(wasm)
    return node(EXPORTS, folder / "m.wasm")


def test_equal_stubs_become_one_and_what_javascript_sees_stays(program: Path, tmp_path: Path) -> None:
    module = parse(FIXTURES["threads"])
    stubs = cut(module, [0], 16, dict.fromkeys(range(len(bodies(module))), 7))
    merged = binaryen.merged(stubs.to_bytes(), program)
    assert refusals([merged], tmp_path) == [None]
    assert len(bodies(parse(merged))) < len(bodies(module))
    assert interface(merged, tmp_path)["exports"] == interface(stubs.to_bytes(), tmp_path)["exports"]


def test_what_nothing_refers_to_is_dropped(program: Path) -> None:
    assert len(bodies(parse(binaryen.merged(code_module(b"\0\x0b", b"\0\0\x0b"), program)))) == 0


@pytest.mark.parametrize("name", ["control", "threads", "stack_first", "kernels", "texts"])
def test_what_comes_out_is_what_edgekit_and_browsers_read(name: str, program: Path, tmp_path: Path) -> None:
    made = binaryen.merged(FIXTURES[name], program)
    assert parse(made).to_bytes() == made
    assert refusals([made], tmp_path) == [None]
    ours, stock = interface(made, tmp_path), interface(FIXTURES[name], tmp_path)
    assert ours["exports"] == stock["exports"]
    # An import that nothing calls is dropped: JavaScript may give more than is taken.
    assert [one for one in stock["imports"] if one in ours["imports"]] == ours["imports"]


def test_the_same_module_gives_the_same_bytes(program: Path) -> None:
    assert binaryen.merged(FIXTURES["kernels"], program) == binaryen.merged(FIXTURES["kernels"], program)


@pytest.mark.parametrize("wasm", [b"no wasm", MAGIC + b"\x01\x05\x01", code_module(b"\0\x6a\x0b")])
def test_what_is_no_valid_module_is_refused_in_wasm_opts_words(wasm: bytes, program: Path) -> None:
    with pytest.raises(BinaryenError, match=r"wasm-opt failed \(exit [1-9]\d*\): \S"):
        binaryen.merged(wasm, program)


def test_a_program_that_is_not_there_or_hangs_is_an_error(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BinaryenError, match=r"wasm-opt failed \(exit 1\): \S"):
        binaryen.merged(FIXTURES["threads"], tmp_path / "none")
    (tmp_path / "slow").write_text("setTimeout(() => {}, 60_000);")
    monkeypatch.setattr(binaryen, "_SECONDS", 0.5)
    with pytest.raises(BinaryenError, match=r"could not be run: .*timed out"):
        binaryen.merged(FIXTURES["threads"], tmp_path / "slow")
    (tmp_path / "idle").write_text("")
    monkeypatch.setattr(binaryen, "_SECONDS", 60)
    with pytest.raises(BinaryenError, match=r"wasm-opt failed \(exit 0\)"):
        binaryen.merged(FIXTURES["threads"], tmp_path / "idle")
