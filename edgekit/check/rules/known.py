"""Rules on attributes known to give different answers in different runtimes. Each names the case that was measured."""

import math
from collections.abc import Iterator

import numpy as np

from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Placed, Subject, text
from edgekit.errors import ModelError
from edgekit.model.io import to_array

# Standard cases of the onnx package that the pinned onnxruntime-web fails, on the CPU and on WebGPU alike.
_ALIGN_CASES = "test_resize_downsample_scales_linear_align_corners, test_resize_downsample_scales_cubic_align_corners"
_UNPOOL_CASE = "test_maxunpool_export_with_output_shape"


def _shrinks(subject: Subject, placed: Placed) -> bool:
    """Whether a Resize makes an axis smaller, or may: by its scales where they are known."""
    inputs = placed.node.input
    if len(inputs) > 2 and inputs[2]:
        scales = _scales(subject, inputs[2])
        if scales is not None:
            return any(scale < 1 for scale in scales)
    before = subject.shape(inputs[0], placed) if inputs else None
    after = subject.shape(placed.node.output[0], placed) if placed.node.output else None
    if before is None or after is None or len(before) != len(after):
        return True
    pairs = zip(before, after, strict=True)
    return any(not (isinstance(a, int) and isinstance(b, int)) or b < a for a, b in pairs)


@rule("resize-nearest-floor", "warning")
def resize_nearest_floor(subject: Subject) -> Iterator[Hit]:
    """Nearest Resize that may be off by one pixel.

    Measured (BR-060): desktop, wasm and WebGPU agree, and differ from floor(i × in / out) by a pixel.
    """
    for placed in subject.nodes:
        node = placed.node
        if not placed.is_standard("Resize") or text(node, "mode", "nearest") != "nearest":
            continue
        asymmetric = text(node, "coordinate_transformation_mode", "half_pixel") == "asymmetric"
        if asymmetric and text(node, "nearest_mode", "round_prefer_floor") == "floor" and not _whole(subject, placed):
            yield Hit(
                "Nearest Resize, asymmetric and floor, as PyTorch exports it: onnxruntime rounds the scale to float32 "
                "first, and was measured to take a neighbouring pixel where out / in is not exact (case BR-060). All "
                "its builds agree, so parity with the desktop does not see it.",
                placed.name,
                fix="Take the reference from the training framework: "
                "'edgekit build MODEL -t ID --reference module:name'.",
            )


def _whole(subject: Subject, placed: Placed) -> bool:
    """Whether every scale is a whole number, or one over a power of two: these are exact."""
    before = subject.shape(placed.node.input[0], placed) if placed.node.input else None
    after = subject.shape(placed.node.output[0], placed) if placed.node.output else None
    if before is not None and after is not None and len(before) == len(after):
        pairs = list(zip(before, after, strict=True))
        if all(isinstance(a, int) and isinstance(b, int) and a > 0 for a, b in pairs):
            return all(_exact(b / a) for a, b in pairs if isinstance(a, int) and isinstance(b, int))
    scales = _scales(subject, placed.node.input[2] if len(placed.node.input) > 2 else "")
    return bool(scales) and all(_exact(scale) for scale in scales or ())


def _scales(subject: Subject, name: str) -> tuple[float, ...] | None:
    """The values of a stored tensor of scales; None where they are computed, or damaged."""
    tensor = subject.constants.get(name)
    if tensor is None:
        return None
    try:
        return tuple(float(scale) for scale in np.asarray(to_array(subject.model, tensor), np.float64).ravel())
    except (ModelError, ValueError, TypeError):
        return None


def _exact(scale: float) -> bool:
    """Whether float32 holds the scale and its inverse exactly enough: whole, or one over a power of two."""
    return scale > 0 and (scale.is_integer() or math.frexp(scale)[0] == 0.5)


@rule("resize-align-corners", "warning")
def resize_align_corners(subject: Subject) -> Iterator[Hit]:
    """A shrinking Resize with aligned corners."""
    for placed in subject.nodes:
        node = placed.node
        if not placed.is_standard("Resize") or text(node, "mode", "nearest") not in ("linear", "cubic"):
            continue
        aligned = text(node, "coordinate_transformation_mode", "half_pixel") == "align_corners"
        if aligned and len(node.input) > 2 and node.input[2] and _shrinks(subject, placed):
            yield Hit(
                f"Resize with align_corners makes its input smaller by scales: onnxruntime gives other values than the "
                f"standard (cases {_ALIGN_CASES}).",
                placed.name,
                fix="Resize by sizes instead of scales, or take the reference from the training framework.",
            )


@rule("maxunpool-output-shape", "warning")
def maxunpool_output_shape(subject: Subject) -> Iterator[Hit]:
    """MaxUnpool with an output shape."""
    for placed in subject.nodes:
        if placed.is_standard("MaxUnpool") and len(placed.node.input) > 2 and placed.node.input[2]:
            yield Hit(
                f"MaxUnpool with output_shape: onnxruntime gives other values than the standard (case {_UNPOOL_CASE}).",
                placed.name,
                fix="Leave output_shape out and pad afterwards.",
            )


@rule("scalar-axes", "warning")
def scalar_axes(subject: Subject) -> Iterator[Hit]:
    """Axes stored as a scalar.

    Case BR-018: WebGPU refused it in the past, and other runtimes do.
    """
    for placed in subject.nodes:
        if not placed.is_standard("Unsqueeze", "Squeeze") or len(placed.node.input) < 2 or not placed.node.input[1]:
            continue
        name = placed.node.input[1]
        if subject.shape(name, placed) == ():
            yield Hit(
                f"The axes of this {placed.node.op_type} are a scalar; the standard wants a list of one (case BR-018). "
                "onnxruntime takes it, other runtimes refuse it.",
                placed.name,
                name,
                "'edgekit trim MODEL -o OUT' stores them as a list.",
            )
