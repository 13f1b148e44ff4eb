"""Tiny Linux bundles for tests: a real model, runner and installer, and wheels that only look like wheels."""

import platform
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx.parser

from edgekit.bundle import linux
from edgekit.bundle.linux import Content
from edgekit.bundle.open import Bundle, open_bundle
from edgekit.bundle.wheels import Wheel
from edgekit.files import sha256_bytes
from edgekit.model import io
from edgekit.records.cases import CaseSet, FeedBack, GoldenCase, Reference, Tolerance
from edgekit.records.tensors import Value
from edgekit.targets.load import Limits, Parity, Runtime, Target
from edgekit.targets.options import Linux

THIS = f"{sys.version_info.major}.{sys.version_info.minor}"
# y = x * [1, -1]; z counts: what comes out is what went in, and one more.
MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
tiny (float[N, 2] x, int64[1] n) => (float[N, 2] y, int64[1] z) <float[2] w = {1, -1}, int64[1] one = {1}>
{ y = Mul(x, w)  z = Add(n, one) }
"""


def target(**changes: object) -> Target:
    """A target that is this machine."""
    options = replace(Linux(machine=platform.machine(), pythons=(THIS,)), **changes)
    return Target("here", "This machine", "linux", Runtime("onnxruntime", ("cpu",), 1), Limits(1 << 30, 13, 26),
                  Parity("emulated"), linux=options)  # fmt: skip


def case_set(model: bytes, shift: float = 0.0) -> CaseSet:
    """Two cases that are right (or off by ``shift``): one run, and a loop of three steps."""
    x = Value("x", "float32", np.array([[1, 2]], np.float32))
    y = Value("y", "float32", np.array([[1 + shift, -2]], np.float32))

    def number(name: str, value: int) -> Value:
        return Value(name, "int64", np.array([value], np.int64))

    return CaseSet(
        model_sha256=sha256_bytes(model),
        reference=Reference("by hand", "none", "0", "disabled"),
        tolerance={"float32": Tolerance(1e-4, 1e-6)},
        output_tolerance={},
        cases=(
            GoldenCase("once", "by hand", (x, number("n", 4)), (y, number("z", 5))),
            GoldenCase("loop", "by hand", (x, number("n", 0)), (y, number("z", 3)), feed_back=FeedBack(3, {"n": "z"})),
        ),
    )


def wheels(
    folder: Path, pythons: tuple[str, ...], machine: str, packages: tuple[str, ...] = ("onnxruntime", "numpy")
) -> tuple[dict[str, Path], tuple[Wheel, ...]]:
    """Write a tiny wheel of each package for each version of Python."""
    places: dict[str, Path] = {}
    found = []
    for python in pythons:
        for package in packages:
            tag = f"cp{python.replace('.', '')}"
            name = f"{package.replace('-', '_')}-9.0-{tag}-{tag}-manylinux_2_28_{machine}.whl"
            with zipfile.ZipFile(folder / name, "w") as archive:
                archive.writestr(zipfile.ZipInfo(f"{package}/__init__.py"), f"name = '{package} {python}'\n")
            data = (folder / name).read_bytes()
            places[name] = folder / name
            found.append(Wheel(package, "9.0", python, machine, name, sha256_bytes(data), len(data)))
    return places, tuple(found)


def make(
    folder: Path, *, model: str = MODEL, shift: float = 0.0, name: str = "Tiny model", **options: object
) -> Bundle:
    """Write a bundle into ``folder``/bundle."""
    chosen = target(**options)
    source = folder / "model.onnx"
    folder.mkdir(parents=True, exist_ok=True)
    source.write_bytes(onnx.parser.parse_model(model).SerializeToString())
    loaded = io.load(source)
    places, pinned = wheels(folder, chosen.linux.pythons, chosen.linux.machine)
    content = Content(loaded, case_set(source.read_bytes(), shift), name, places, pinned)
    linux.write(folder / "bundle", content, chosen, force=False)
    return open_bundle(folder / "bundle")
