"""Features of operators that move a window (convolutions, pools), of Slice and Pad, and of those that broadcast."""

from collections.abc import Mapping
from typing import Any

_CONVOLUTIONS = {"Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv"}
_POOLS = {"MaxPool", "AveragePool", "LpPool"}
_PAIRS = 2


def window_features(
    operator: str, attributes: Mapping[str, Any], inputs: Mapping[str, Any], outputs: Any
) -> dict[str, Any]:
    """Return what ``edgekit.known.features`` adds for some operators; nothing for others or for unknown shapes."""
    if operator in _CONVOLUTIONS:
        return _convolution(operator, attributes, inputs)
    if operator in _POOLS:
        data = _shape(inputs.get("X"))
        return {} if data is None else _window(attributes, tuple(attributes.get("kernel_shape", ())), data[2:])
    if operator == "Slice":
        return _slice(inputs)
    if operator == "Pad":
        return _pad(attributes, inputs)
    shapes = [shape for given in inputs.values() if given is not None and (shape := _shape(given)) is not None]
    if len(inputs) == _PAIRS and len(shapes) == _PAIRS:
        return {"inputs alike": shapes[0] == shapes[1], "first has fewer axes": len(shapes[0]) < len(shapes[1])}
    return {}


def _shape(given: Any) -> tuple[int, ...] | None:
    shape = None if given is None else given.shape
    return None if shape is None or any(size is None for size in shape) else shape


def _slice(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether an axis is turned round, and then from its last element or from one before it."""
    shape = _shape(inputs.get("data"))
    starts, steps, axes = (
        None if (given := inputs.get(name)) is None else given.values for name in ("starts", "steps", "axes")
    )
    if shape is None or starts is None:
        return {}
    if inputs.get("steps") is None:
        return {"turned round": False, "turned round from within": False}
    if steps is None or (axes is None and inputs.get("axes") is not None):
        return {}
    places = range(len(starts)) if axes is None else axes
    turned = [(start, shape[axis]) for start, step, axis in zip(starts, steps, places, strict=False) if step < 0]
    before = any((start + size if start < 0 else start) < size - 1 for start, size in turned)
    return {"turned round": bool(turned), "turned round from within": before}


def _pad(attributes: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether an axis is padded by more than it holds, before it and behind it."""
    shape, given, axes = _shape(inputs.get("data")), inputs.get("pads"), inputs.get("axes")
    pads = attributes.get("pads") if given is None else given.values
    if shape is None or pads is None or (axes is not None and axes.values is None):
        return {}
    places = range(len(shape)) if axes is None else axes.values
    sizes, half = [shape[axis] for axis in places if -len(shape) <= axis < len(shape)], len(pads) // 2
    before, behind = (
        any(pad > size for pad, size in zip(part, sizes, strict=False)) for part in (pads[:half], pads[half:])
    )
    return {"padded before by more than the axis holds": before, "padded behind by more than the axis holds": behind}


def _convolution(operator: str, attributes: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    weights = _shape(inputs.get("W") or inputs.get("w"))
    if weights is None:
        return {}
    group = attributes.get("group", 1)
    across = operator == "ConvTranspose"
    found: dict[str, Any] = {
        "input channels": weights[0] if across else weights[1] * group,
        "output channels": weights[1] * group if across else weights[0],
        "input channels of a group": weights[0] // max(1, group) if across else weights[1],
        "output channels of a group": weights[1] if across else weights[0] // max(1, group),
        "window axes": len(weights) - 2,
    }
    found["depthwise"] = group > 1 and found["input channels of a group"] == 1
    data = inputs.get("X") or inputs.get("x")
    sizes = None if data is None or data.shape is None else data.shape[2:]
    return found | _window(attributes, weights[2:], sizes)


def _window(
    attributes: Mapping[str, Any], kernel: tuple[int, ...], sizes: tuple[int | None, ...] | None
) -> dict[str, Any]:
    """Return features of the kernel; ``sizes`` of the axes that it moves over, where they are known."""
    rank = len(kernel)
    strides = tuple(attributes.get("strides", ())) or (1,) * rank
    pads = tuple(attributes.get("pads", ())) or (0,) * (2 * rank)
    auto = attributes.get("auto_pad", "NOTSET")
    found: dict[str, Any] = {
        "kernel of ones": all(size == 1 for size in kernel),
        "kernel greatest": max(kernel, default=1),
        "strided": any(stride != 1 for stride in strides),
        "dilated": any(step != 1 for step in attributes.get("dilations", ())),
        "padded before": any(pads[:rank]),
        "padded behind": any(pads[rank:]),
        "padded by rule": auto in ("SAME_UPPER", "SAME_LOWER"),
    }
    # What onnxruntime's WebGPU convolution computes as one matrix product; it looks at the padding before alone.
    whole = None if sizes is None or any(size is None for size in sizes) else sizes == kernel
    before = found["padded before"] or auto == "SAME_LOWER"
    product = not before and found["kernel of ones"] and not found["strided"]
    if whole is not None:
        found["kernel as large as the input"] = whole
        found["one matrix product"] = product or (not before and whole)
    elif product:
        found["one matrix product"] = True
    return found
