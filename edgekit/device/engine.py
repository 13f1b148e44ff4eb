"""One session of the bundle's model, and what is known of the machine that it runs on."""

import os
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import onnxruntime as ort

from edgekit.bundle.open import Bundle, open_bundle
from edgekit.desktop import child
from edgekit.desktop.exchange import StoredFeed, StoredResult
from edgekit.device import ranks
from edgekit.device.config import Session
from edgekit.errors import BundleError, ModelError
from edgekit.files import sha256_file
from edgekit.records.run_record import Environment
from edgekit.records.tensors import Value

PROVIDER = "cpu"
_MODEL_FILES = ("model/", "cases/")


def open_checked(folder: Path) -> Bundle:
    """Open the bundle, and check the files that are run: the model and the golden cases.

    Wheels and the rest need not be there any more on a device. Raises BundleError.
    """
    try:
        bundle = open_bundle(folder, verify=False)
    except (KeyError, TypeError) as error:
        raise BundleError(f"The manifest of {folder} is damaged.", hint="Copy the bundle again.") from error
    for entry in bundle.manifest.files:
        if not entry.path.startswith(_MODEL_FILES):
            continue
        place = folder / entry.path
        if place.is_symlink() or not place.is_file() or sha256_file(place) != entry.sha256:
            raise BundleError(f"{place} is missing, or is not the bundle's.", hint="Copy the bundle again.")
    return bundle


def cores() -> frozenset[int]:
    """Return the cores that this process may run on; none where the system does not tell."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def pin(cores: Sequence[int]) -> tuple[int, ...]:
    """Run this process, and the threads that it will start, on those of ``cores`` that there are; return them.

    Where none of them is there, or the system has no such call, it runs where it did: an empty tuple.
    """
    if not cores or not hasattr(os, "sched_setaffinity"):
        return ()
    chosen = set(cores) & os.sched_getaffinity(0)
    if not chosen:
        return ()
    with suppress(OSError):
        os.sched_setaffinity(0, chosen)
        return tuple(sorted(chosen))
    return ()


class Engine:
    """A session. ``create_ms``: how long it took to create; ``threads``: how many an inference uses; ``any_rank``: the
    inputs and outputs that the model declares without a shape.
    """

    def __init__(self, bundle: Bundle, settings: Session) -> None:
        """Raises ModelError when the runtime refuses the model."""
        self.bundle = bundle
        self.settings = settings
        pinned = pin(settings.cores)
        threads = settings.threads or len(pinned) or None
        ort.set_default_logger_severity(4)
        ort.disable_telemetry_events()
        model = bundle.folder / bundle.manifest.model.path
        started = time.perf_counter()
        try:
            self.session = child.create_session(str(model), settings.optimization, threads)
        except Exception as error:
            raise ModelError(f"onnxruntime {ort.__version__} refuses the model: {error}") from error
        self.create_ms = (time.perf_counter() - started) * 1000
        self.threads = threads or os.cpu_count() or 1
        arguments = [*self.session.get_inputs(), *self.session.get_outputs()]
        shapeless = {one.name for one in arguments if not one.shape}
        self.any_rank = shapeless and shapeless & ranks.unknown(model)

    def run(self, feed: StoredFeed, seconds: float | None = None) -> StoredResult:
        """Run a golden case or a request; a refusal is a result with an error."""
        return child.run_feed(self.session, feed, seconds)

    def infer(self, values: Sequence[Value], options: ort.RunOptions) -> tuple[Value, ...]:
        """Run once. Raises ``child.RefusedError`` for inputs that are not the model's, and what onnxruntime raises."""
        kinds = {argument.name: argument.type for argument in self.session.get_outputs()}
        outputs = child.fetch(self.session, child.prepare(self.session, values), kinds, options)
        return tuple(child.read_outputs(self.session, outputs))

    def environment(self) -> Environment:
        """Say where this is, as run records do."""
        return Environment(
            runner="edgekit-run",
            runtime="onnxruntime",
            runtime_version=ort.__version__,
            variant=PROVIDER,
            execution_provider_asked=PROVIDER,
            execution_provider=PROVIDER,
            threads=self.threads,
            cross_origin_isolated=None,
            adapter=None,
            user_agent=f"{_system()}, Python {platform.python_version()}",
            device=_device(),
        )


def runtime_sha256() -> str | None:
    """Return the sha256 of the library of onnxruntime that this process loaded; None where it is not to be found."""
    libraries = sorted((Path(ort.__file__).parent / "capi").glob("onnxruntime_pybind11_state*.so"))
    return sha256_file(libraries[0]) if libraries else None


def _device() -> str:
    """Name the machine as its firmware does ("Raspberry Pi 5 Model B Rev 1.0"), else by its processor's kind."""
    with suppress(OSError):
        name = Path("/proc/device-tree/model").read_bytes().rstrip(b"\0").decode(errors="replace").strip()
        if name:
            return name
    return f"{platform.system()} {platform.machine()}"


def _system() -> str:
    with suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return platform.system()
