"""Run one input from a file."""

import time
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime as ort

from edgekit.bundle.open import Bundle
from edgekit.desktop import child
from edgekit.device import payload
from edgekit.device.config import Session
from edgekit.device.engine import Engine
from edgekit.errors import ModelError, UsageError
from edgekit.files import write_atomic
from edgekit.records import tensors
from edgekit.records.tensors import Value

_MOST_BYTES = 1 << 30


def run(bundle: Bundle, settings: Session, source: Path, output: Path | None) -> str | None:
    """Run the inputs in ``source``; write the outputs to ``output``, or return them as JSON.

    Raises UsageError for a file that does not hold the model's inputs, ModelError where the runtime refuses them.
    """
    if output is not None and output.suffix not in (".json", ".safetensors"):
        raise UsageError(f"{output} is neither .json nor .safetensors.")
    engine = Engine(bundle, settings)
    values = read(source, engine)
    started = time.perf_counter()
    try:
        outputs = engine.infer(values, ort.RunOptions())
    except child.RefusedError as error:
        raise UsageError(f"{source}: {error}.") from error
    except Exception as error:
        raise ModelError(f"The model does not take {source}: {error}") from error
    run_ms = (time.perf_counter() - started) * 1000
    if output is not None:
        data = payload.to_safetensors(outputs) if output.suffix == ".safetensors" else payload.to_json(outputs, run_ms)
        write_atomic(output, data)
        return None
    return payload.to_json(outputs, run_ms).decode() + "\n"


def read(source: Path, engine: Engine) -> tuple[Value, ...]:
    """Read inputs from a .json, .safetensors or .npz file. Raises UsageError."""
    try:
        if source.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{source} has more than {_MOST_BYTES:,} bytes.")
        data = source.read_bytes()
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}.") from error
    if source.suffix == ".json":
        return payload.from_json(data, input_dtypes(engine), str(source))
    if source.suffix == ".safetensors":
        return payload.from_safetensors(data, str(source))
    if source.suffix == ".npz":
        try:
            with np.load(source, allow_pickle=False) as arrays:
                return tuple(tensors.value_of(name, arrays[name]) for name in arrays.files)
        except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
            raise UsageError(f"{source} is not an .npz file of numbers: {error}") from error
    raise UsageError(f"{source} is none of .json, .safetensors and .npz.")


def input_dtypes(engine: Engine) -> dict[str, str]:
    """Return the dtypes that the model's inputs take, by name."""
    return {argument.name: child.dtype_of(argument.type) for argument in engine.session.get_inputs()}
