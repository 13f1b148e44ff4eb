"""Where models are tried: a browser with the published runtime, the desktop, and the float64 evaluation."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx

from edgekit.conformance import desktop
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.diagnose import exact
from edgekit.isolate.reduce import Sample
from edgekit.metrics import measure
from edgekit.progress import Progress, silent
from edgekit.records import settings as session_settings
from edgekit.records.cases import Tolerance
from edgekit.records.run_record import Adapter
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value
from edgekit.runners import conformance
from edgekit.runners.browsers import Engine, Gpu
from edgekit.runners.conformance import Browsed
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_EXACT = Tolerance(0.0, 0.0)


@dataclass(frozen=True)
class Place:
    """A browser engine, a variant of a runtime, and threads."""

    engine: Engine
    variant: Variant
    dist: RuntimeDist
    threads: int

    @property
    def label(self) -> str:
        threads = f" {self.threads} threads" if self.threads > 1 else ""
        return f"{self.engine.id} {self.variant.id}{threads}"


@dataclass(frozen=True)
class Error:
    """How far a value is from another: relative to the scale, infinite for NaN, infinity, and what is missing."""

    relative: float
    wrong: bool
    nonfinite: bool = False


@dataclass(frozen=True, eq=False)
class Lab:
    """Tries models in one place, beside the desktop. ``tolerance``: by dtype. ``seen``: what the place was, by run."""

    place: Place
    tolerance: Mapping[str, Tolerance]
    gpu: Gpu = "auto"
    browser_path: Path | None = None
    progress: Progress = silent
    seen: list[Browsed] = field(default_factory=list)

    @property
    def adapter(self) -> Adapter | None:
        """The adapter of the latest run there; None before one, and without WebGPU."""
        return self.seen[-1].adapter if self.seen else None

    @property
    def browser_version(self) -> str:
        """The browser's version in the latest run there; empty before one."""
        return self.seen[-1].browser_version if self.seen else ""

    def browser(self, cases: Sequence[Case], place: Place | None = None) -> tuple[Reply, ...]:
        """Return what the browser makes of each case. Raises what ``conformance.replay`` raises."""
        if not cases:
            return ()
        at = place or self.place
        path = self.browser_path if at.engine is self.place.engine else None
        models = f"{len(cases)} model{'' if len(cases) == 1 else 's'}"
        said = f"Trying {models} in {at.engine.name} ({at.variant.id})"

        def progress(message: str, done: float | None = None) -> None:
            """Tell what is tried: the browser's start is the least of it, and nothing more may be heard for minutes."""
            self.progress(said, done)

        browsed = conformance.replay(
            cases, at.variant, at.dist, engine=at.engine, threads=at.threads,
            browser_path=path, gpu=self.gpu, progress=progress,
        )  # fmt: skip
        if place is None:
            self.seen.append(browsed)
        return browsed.replies

    def desktop(self, cases: Sequence[Case]) -> tuple[Reply, ...]:
        """Return what desktop onnxruntime makes of each case, with graph optimization off."""
        return desktop.replay(cases, progress=self.progress) if cases else ()

    def exact(self, cases: Sequence[Case]) -> tuple[Reply, ...]:
        """Return what the float64 evaluation makes of each case."""
        return exact.evaluate(cases)

    def error(self, given: Array | None, expected: Array) -> Error:
        """Measure a value against another by the tolerance of the expected one's dtype."""
        name = "string" if expected.dtype.kind in "OUST" else expected.dtype.name
        return error_of(given, expected, self.tolerance.get(name, _EXACT))


def error_of(given: Array | None, expected: Array, tolerance: Tolerance) -> Error:
    """Measure a value against another; see ``edgekit.compare`` for the rule."""
    if given is None or given.shape != expected.shape:
        return Error(math.inf, wrong=True)
    if expected.dtype.kind in "OUST":
        wrong = given.tolist() != expected.tolist()
        return Error(math.inf if wrong else 0.0, wrong)
    metrics = measure(given, expected, absolute=tolerance.absolute)
    nonfinite = metrics.first_nonfinite is not None
    relative = math.inf if nonfinite else metrics.max_rel
    if expected.size and metrics.scale == 0 and not nonfinite and metrics.max_abs <= tolerance.absolute:
        relative = 0.0
    return Error(relative, metrics.passing_relative > tolerance.relative, nonfinite)


def worst(errors: Sequence[Error]) -> Error:
    """Return the largest of some errors; none at all are no error."""
    return max(errors, key=lambda error: (error.wrong, error.relative), default=Error(0.0, wrong=False))


def case_of(
    model: onnx.ModelProto | bytes,
    inputs: Sequence[Value],
    settings: SessionSettings = session_settings.DEFAULT,
    name: str = "trial",
) -> Case:
    """Return a model and its inputs as a case to replay."""
    data = model if isinstance(model, bytes) else model.SerializeToString(deterministic=True)
    return Case(name, "generated", data, tuple(inputs), (), None, settings=settings)


def case_of_sample(sample: Sample) -> Case:
    """Return a sample as a case to replay."""
    return case_of(sample.model, sample.inputs)


def arrays_of(reply: Reply) -> dict[str, Array]:
    """Return the tensors of a reply by name."""
    return {value.name: value.array for value in reply.outputs if value.array is not None}


def as_dtype(array: Array, like: Array) -> Array:
    """Return a float64 array rounded to the dtype of ``like``, where that is a float: what an exact device gives."""
    if like.dtype.name in _FLOATS and array.dtype != like.dtype:
        with np.errstate(all="ignore"):
            return array.astype(NUMPY_DTYPES[like.dtype.name])
    return array


def with_threads(place: Place, threads: int) -> Place:
    """Return the same place with another number of threads."""
    return replace(place, threads=threads)
