"""Read the user's real inputs: arrays, ONNX tensors, pictures, and folders of them.

    case.npz, case.safetensors   one case; the keys are input names
    x.npy, x.pb, x.png           one case of a model with one input; otherwise named after its input
    a folder                     one case, when its files are named after inputs, or like ONNX test data (input_0.pb,
                                 with output_0.pb beside it, which is not read); otherwise each file and each
                                 subfolder in it is a case

Files are untrusted: sizes are bounded and nothing is unpickled.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
from google.protobuf.message import DecodeError

from edgekit.errors import LimitError, UsageError
from edgekit.facts.survey import Argument
from edgekit.golden import images
from edgekit.golden.images import ImageOptions
from edgekit.records import array_files
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value, value_of

_KEYED = (".npz", ".safetensors")
_SINGLE = (".npy", ".pb", *images.SUFFIXES)
_NUMBERED = re.compile(r"input_(\d{1,4})\.pb")
_MOST_CASES = 64
_DEEPEST = 2
_DEFAULT_OPTIONS = ImageOptions()

Sample = tuple[str, tuple[Value, ...]]


def load(
    paths: Iterable[Path], arguments: Sequence[Argument], options: ImageOptions = _DEFAULT_OPTIONS
) -> list[Sample]:
    """Read samples, in the order given (in folders: of their names): where each came from, and its values.

    Values are in the order of ``arguments`` (the model's inputs) and of their dtype, rank and fixed dimensions. Where
    a dtype was changed, the origin says so. Optional inputs may be left out.

    Raises UsageError, naming file, input, what was found and what is wanted; LimitError for more than 64 cases or
    1 GiB of a file.
    """
    samples: list[Sample] = []
    for path in paths:
        for files in _cases(path, arguments, 0):
            if len(samples) == _MOST_CASES:
                raise LimitError(f"{path}: more than {_MOST_CASES} samples are given.", hint="Choose the telling ones.")
            samples.append(_sample(files, arguments, options))
    return samples


def _cases(path: Path, arguments: Sequence[Argument], depth: int) -> list[list[Path]]:
    """Return the files of each case under ``path``."""
    suffix = path.suffix.lower()
    if not path.is_dir():
        if suffix not in (*_KEYED, *_SINGLE):
            kinds = ", ".join((*_KEYED, *_SINGLE))
            missing = "" if path.exists() else " There is no such file."
            raise UsageError(
                f"{path} cannot be read as a sample.{missing}", hint=f"Samples are {kinds}, or folders of them."
            )
        return [[path]]
    entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    files = [entry for entry in entries if entry.is_file() and entry.suffix.lower() in (*_KEYED, *_SINGLE)]
    files = [file for file in files if not re.fullmatch(r"output_\d+\.pb", file.name)]
    folders = [entry for entry in entries if entry.is_dir() and depth < _DEEPEST]
    names = {argument.name for argument in arguments}
    if files and all(
        _NUMBERED.fullmatch(file.name) or (file.suffix.lower() in _SINGLE and file.stem in names) for file in files
    ):
        found = [files]
    else:
        found = [[file] for file in files]
    for folder in folders:
        found += _cases(folder, arguments, depth + 1)
    if not found and depth == 0:
        raise UsageError(
            f"The folder {path} holds no samples.", hint=f"Samples are {', '.join((*_KEYED, *_SINGLE))} files."
        )
    return found


def _sample(files: Sequence[Path], arguments: Sequence[Argument], options: ImageOptions) -> Sample:
    where = files[0] if len(files) == 1 else files[0].parent
    arrays: dict[str, Array] = {}
    pictures: list[str] = []
    for file in files:
        for name, array in _arrays(file, arguments, options).items():
            if name in arrays:
                raise UsageError(f"{where}: two files give the input '{name}'.")
            arrays[name] = array
            if file.suffix.lower() in images.SUFFIXES:
                pictures.append(images.describe(file, array, _image_target(file, arguments), options))
    known = {argument.name: argument for argument in arguments}
    for name in arrays:
        if name not in known:
            raise UsageError(f"{where} holds '{name}', which is not an input of the model.", hint=_inputs(arguments))
    missing = [a.name for a in arguments if a.name not in arrays and not a.type.startswith("optional(")]
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing)
        raise UsageError(f"{where} gives no value for {listed}.", hint=_inputs(arguments))
    values, changes = [], pictures
    for argument in arguments:
        if argument.name in arrays:
            value, change = fitted(where, arrays[argument.name], argument)
            values.append(value)
            changes += [change] if change else []
    origin = f"sample {where.name}" + (f" ({'; '.join(changes)})" if changes else "")
    return origin, tuple(values)


def _inputs(arguments: Sequence[Argument]) -> str:
    return "The model's inputs: " + ", ".join(f"'{argument.name}' {wanted(argument)}" for argument in arguments) + "."


def _arrays(path: Path, arguments: Sequence[Argument], options: ImageOptions) -> Mapping[str, Array]:
    """Return what one file gives, by input name."""
    suffix = path.suffix.lower()
    if suffix in _KEYED:
        return array_files.read_arrays(path)
    if suffix == ".npy":
        return {_target(path, path.stem, arguments).name: array_files.read_npy(path)}
    if suffix == ".pb":
        return _read_pb(path, arguments)
    argument = _image_target(path, arguments)
    return {argument.name: images.load_image(path, argument, options)}


def _target(path: Path, name: str, arguments: Sequence[Argument]) -> Argument:
    """Return the input that ``name`` names, or the only one."""
    for argument in arguments:
        if argument.name == name:
            return argument
    if len(arguments) == 1:
        return arguments[0]
    raise UsageError(
        f"{path} does not tell which of the model's {len(arguments)} inputs it is for.",
        hint=f"Name it after the input, or put all inputs into one .npz. {_inputs(arguments)}",
    )


def _image_target(path: Path, arguments: Sequence[Argument]) -> Argument:
    named = [argument for argument in arguments if argument.name == path.stem]
    fitting = [argument for argument in arguments if images.takes_images(argument)]
    return named[0] if named else fitting[0] if len(fitting) == 1 else _target(path, path.stem, arguments)


def _read_pb(path: Path, arguments: Sequence[Argument]) -> dict[str, Array]:
    hint = "It must hold one ONNX TensorProto, with its data inside."
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(array_files.read_bytes(path))
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise UsageError(f"{path} keeps its data in another file, which is not read.", hint=hint)
        array = onnx.numpy_helper.to_array(tensor)
    except (DecodeError, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError) as error:
        raise UsageError(f"{path} is not an ONNX tensor: {error}", hint=hint) from error
    if any(argument.name == tensor.name for argument in arguments):
        return {tensor.name: array}
    numbered = _NUMBERED.fullmatch(path.name)
    if numbered and int(numbered[1]) < len(arguments):
        return {arguments[int(numbered[1])].name: array}
    return {_target(path, path.stem, arguments).name: array}


def fitted(where: Path, array: Array, argument: Argument) -> tuple[Value, str | None]:
    """Return ``array`` as a value of ``argument``, and in words how its dtype had to change.

    A dtype is changed where no value changes by it, and from a float to a narrower one, by rounding. Raises UsageError
    otherwise, and for a wrong rank or fixed dimension.
    """
    if argument.dtype is None:
        raise UsageError(f"{where}: the input '{argument.name}' is {argument.type}, which samples cannot hold.")
    if array.dtype.kind == "S":
        array = _decoded(where, array, argument)
    if array.dtype.kind == "V" and array.dtype.itemsize == 2 and argument.dtype == "bfloat16":
        array = array.view(NUMPY_DTYPES["bfloat16"])  # numpy files do not know the name of this dtype
    if array.dtype.kind not in "UT" and array.dtype.name not in NUMPY_DTYPES:
        raise _misfit(where, f"{array.dtype} {list(array.shape)}", argument)
    value = value_of(argument.name, array)
    if not _shape_fits(array.shape, argument):
        raise _misfit(where, f"{value.dtype} {list(array.shape)}", argument)
    if value.dtype == argument.dtype:
        return value, None
    if "string" in (value.dtype, argument.dtype):
        raise _misfit(where, f"{value.dtype} {list(array.shape)}", argument)
    cast, how = _cast(array, NUMPY_DTYPES[argument.dtype])
    if cast is None:
        raise _misfit(where, f"{value.dtype} {list(array.shape)}, of which {how}", argument)
    return Value(argument.name, argument.dtype, cast), f"{argument.name}: {value.dtype} to {argument.dtype}, {how}"


def _decoded(where: Path, array: Array, argument: Argument) -> Array:
    try:
        text: Array = np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: the bytes given for '{argument.name}' are not UTF-8 text.") from error
    return text


def _cast(array: Array, dtype: np.dtype[np.generic]) -> tuple[Array | None, str]:
    """Return the cast array and how, or None and what stands against it."""
    with np.errstate(all="ignore"):
        cast: Array = array.astype(dtype)
        back = cast.astype(array.dtype)
    floats = _is_float(array.dtype) and _is_float(dtype)
    if np.array_equal(back, array, equal_nan=floats):
        return cast, "the same values"
    if not floats:
        return None, "some values would change"
    if np.isinf(cast.astype(np.float64)).sum() != np.isinf(array.astype(np.float64)).sum():
        return None, "some values are too large"
    return cast, "rounded"


def _is_float(dtype: np.dtype[np.generic]) -> bool:
    return "float" in dtype.name


def _shape_fits(shape: tuple[int, ...], argument: Argument) -> bool:
    wanted = argument.shape
    return wanted is None or (
        len(shape) == len(wanted) and all(w == n for n, w in zip(shape, wanted, strict=True) if isinstance(w, int))
    )


def _misfit(where: Path, found: str, argument: Argument) -> UsageError:
    return UsageError(f"{where}: the input '{argument.name}' is {found} but the model wants {wanted(argument)}.")


def wanted(argument: Argument) -> str:
    """Say the dtype and the shape of an argument."""
    kind = argument.dtype or argument.type
    if argument.shape is None:
        return kind
    return f"{kind} [{', '.join('?' if dim is None else str(dim) for dim in argument.shape)}]"
