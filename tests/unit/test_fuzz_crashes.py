"""What ends a runtime is made small while it does, in a real Chromium with a runtime that traps on purpose."""

from pathlib import Path

import onnx
import pytest

from edgekit.files import sha256_file
from edgekit.fuzz import crashes, generators, report, write
from edgekit.fuzz.journal import Journal
from edgekit.fuzz.trials import Bench
from edgekit.known.entries import Knowledge
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant

pytestmark = pytest.mark.browser

VARIANT = Variant("fake", "wasm", (), "api.mjs", "glue.mjs", "runtime.wasm")
# It traps on every Gemm that states transB.
SCRIPT = """
export const env = { versions: { common: 'fake', web: 'fake' }, wasm: {} };
export class Tensor { constructor(type, data, dims) { Object.assign(this, { type, data, dims }); } }
export const InferenceSession = { async create(bytes) {
  const model = new TextDecoder().decode(bytes);
  if (model.includes('TRAPPING')) throw new WebAssembly.RuntimeError('unreachable');
  return { inputNames: [], outputNames: ['y'], release: async () => {},
    run: async () => ({ y: new Tensor('float32', Float32Array.of(0, 2), [2]) }) };
} };
"""
AMONG = {"Gemm": generators.families()["Gemm"]}


def bench(folder: Path, trapping: str) -> Bench:
    contents = {
        VARIANT.api: SCRIPT.replace("TRAPPING", trapping).encode(),
        VARIANT.mjs: b"",
        VARIANT.wasm: b"\0asm\1\0\0\0",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    dist = RuntimeDist(folder, "fake", "0", {name: sha256_file(folder / name) for name in contents}, False)
    return Bench(VARIANT, dist)


def crashed(seed: int) -> Journal:
    """Return the journal of a run whose first case with transB crashed."""
    drawn = (generators.draw(seed, number, AMONG) for number in range(200))
    number = next(n for n, one in enumerate(drawn) if one.case is not None and b"transB" in one.case.model)
    told = {str(number): {"generator": "Gemm", "problem": "RuntimeError: unreachable", "side": None}}
    return Journal({}, "-" * number + "c", told)


@pytest.mark.sweep
def test_a_case_that_traps_is_made_small_and_written_down(tmp_path: Path) -> None:
    place, journal = bench(tmp_path, "transB"), crashed(1)
    (found,) = crashes.understand(place, AMONG, 1, journal, 60.0)
    assert found.smallest is not None and found.smallest.drawn.case is not None
    before = generators.draw(1, found.number, AMONG)
    assert before.case is not None and len(found.smallest.drawn.case.model) < len(before.case.model)
    (node,) = onnx.load_from_string(found.smallest.drawn.case.model).graph.node
    assert [attribute.name for attribute in node.attribute] == ["transB"]
    told = report.of(place, 1, 1, journal, (), (), [found])
    (line,) = told.crashed
    assert line.startswith(f"Gemm (case {found.number}): RuntimeError: unreachable; alone too, made small: ")
    repros = write.folder(tmp_path / "run", place, ((), (), [found]), Knowledge("fake", "0", "fake", {}, ()), told)
    assert repros == ("repros/crash-gemm",)
    assert "unreachable" in (tmp_path / "run" / repros[0] / "report.md").read_text(encoding="utf-8")
    assert (tmp_path / "run" / repros[0] / "model.onnx").read_bytes() == found.smallest.drawn.case.model


def test_what_does_not_crash_alone_is_said_to_be_so(tmp_path: Path) -> None:
    (found,) = crashes.understand(bench(tmp_path, "nothing of the kind"), AMONG, 1, crashed(1), 60.0)
    assert (found.smallest, found.text) == (None, "alone it is wrong")
