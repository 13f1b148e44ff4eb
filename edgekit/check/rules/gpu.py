"""Rules on GPU sessions: what is silently wrong, what the device lacks, what is too large."""

from collections.abc import Iterator, Sequence

from edgekit.check.providers import Provider
from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Placed, Subject, integer, integers, stored_bytes, text
from edgekit.model import external_data

_REPAIR = (
    "Serve the model with the target that runs on the CPU, or create the session with preferredLayout 'NCHW', or list "
    "the node in forceCpuNodeNames; all three give the right answer."
)
_DYNAMIC = {
    "ai.onnx": {"DynamicQuantizeLinear", "MatMulInteger", "ConvInteger"},
    "com.microsoft": {
        "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "DynamicQuantizeLinear",
    },
}  # fmt: skip
_DATA_SIZED = {"NonZero", "Unique", "NonMaxSuppression", "Compress", "StringSplit"}


def _gpus(subject: Subject) -> Iterator[Provider]:
    return (provider for provider in subject.providers if provider.gpu)


def _convolutions(subject: Subject) -> Iterator[tuple[Placed, tuple[int, ...]]]:
    """Ungrouped 1-D and 2-D convolutions of float tensors, and the shape of their weights."""
    for placed in subject.nodes:
        if not placed.is_standard("Conv") or len(placed.node.input) < 2 or integer(placed.node, "group", 1) != 1:
            continue
        shape = subject.shape(placed.node.input[1], placed) or ()
        sizes = tuple(size for size in shape if isinstance(size, int))
        if len(sizes) == len(shape) and len(shape) in (3, 4):
            yield placed, sizes


def _as_product(subject: Subject, placed: Placed, weights: tuple[int, ...]) -> bool:
    """Whether the runtime computes the convolution as one matrix product: kernel of 1, or as large as its input.

    It looks at the padding before the data alone. Where the input's size is not known, the answer is False.
    """
    kernel, rank = weights[2:], len(weights) - 2
    if any((integers(placed.node, "pads") or ())[:rank]) or text(placed.node, "auto_pad", "NOTSET") == "SAME_LOWER":
        return False
    if all(size == 1 for size in kernel):
        return all(stride == 1 for stride in integers(placed.node, "strides") or ())
    data = subject.shape(placed.node.input[0], placed)
    return data is not None and tuple(data[2:]) == kernel


@rule("conv-channels-of-three", "warning")
def conv_channels_of_three(subject: Subject) -> Iterator[Hit]:
    """A convolution that WebGPU computes wrongly: channels a multiple of 3.

    Measured with onnxruntime-web 1.30.0 in Chromium, 1-D and 2-D, with and without padding, bias and strides.

    Wrong exactly where: one group; input channels a multiple of 3, not of 4, and above 3; output channels a multiple
    of 4; and the convolution is not computed as one matrix product. The relative error is near 1.
    """
    for provider in _gpus(subject):
        for placed, weights in _convolutions(subject):
            outputs, channels = weights[:2]
            of_three = channels > 3 and channels % 3 == 0 and channels % 4 != 0
            if not of_three or outputs % 4 or _as_product(subject, placed, weights):
                continue
            yield Hit(
                f"{provider.runtime} on {provider.id} computes this {len(weights) - 2}-D Conv wrongly, without an "
                f"error: {channels} input channels (a multiple of 3 and not of 4) to {outputs} (a multiple of 4), one "
                f"group, kernel {'×'.join(map(str, weights[2:]))}. Measured: the error is as large as the answer.",
                placed.name,
                placed.node.input[1],
                _REPAIR,
            )


@rule("conv-padding-behind", "warning")
def conv_padding_behind(subject: Subject) -> Iterator[Hit]:
    """A convolution that WebGPU computes wrongly: padding behind the data alone.

    Measured with onnxruntime-web 1.30.0 in Chromium: the padding behind the data is overlooked.

    Wrong where: one group; no padding before the data, some behind it; and a kernel of 1 with strides of 1, or as large
    as the input.
    """
    for provider in _gpus(subject):
        for placed, weights in _convolutions(subject):
            pads = integers(placed.node, "pads") or ()
            rank = len(weights) - 2
            if any(pads[:rank]) or not any(pads[rank:]) or not _as_product(subject, placed, weights):
                continue
            yield Hit(
                f"{provider.runtime} on {provider.id} computes this Conv wrongly, without an error: it is padded only "
                f"behind the data (pads {list(pads)}), with a kernel of {'×'.join(map(str, weights[2:]))}. Measured: "
                "the error is as large as the answer.",
                placed.name,
                fix="Pad with a Pad node before it, serve the model with the target that runs on the CPU, or list the "
                "node in forceCpuNodeNames.",
            )


@rule("shader-f16", "error")
def shader_f16(subject: Subject) -> Iterator[Hit]:
    """float16 on a GPU that may not have it."""
    for provider in _gpus(subject):
        if "shader-f16" in subject.target.gpu.features:
            continue
        for placed in subject.nodes:
            if "float16" in subject.dtypes([*placed.node.input, *placed.node.output], placed):
                yield Hit(
                    f"The model computes in float16 (first in {placed.operator}), which needs the GPU feature "
                    f"'shader-f16'; target '{subject.target.id}' does not count on it. A device without it refuses the "
                    f"first run.{provider.then}",
                    placed.name,
                    fix="Ship the float32 model as well, or give your own target file [gpu] features = "
                    '["shader-f16"] when all its devices have it.',
                    severity=provider.refusal,
                )
                break


@rule("storage-buffers", "error")
def storage_buffers(subject: Subject) -> Iterator[Hit]:
    """A node with more tensors than a shader can bind."""
    most = subject.target.gpu.storage_buffers
    for provider in _gpus(subject):
        for placed in subject.nodes:
            tensors = len([name for name in placed.node.output if name]) + 1
            if placed.is_standard("Split") and tensors > most:
                yield Hit(
                    f"Split binds {tensors} tensors at once; a GPU of target '{subject.target.id}' is only sure to "
                    f"bind {most} storage buffers, and {provider.runtime} refuses the node then.{provider.then}",
                    placed.name,
                    fix="Split in two steps, or take the parts with Slice.",
                    severity=provider.refusal,
                )


@rule("gpu-buffer", "warning")
def gpu_buffer(subject: Subject) -> Iterator[Hit]:
    """A tensor larger than a GPU buffer."""
    most = subject.target.gpu.buffer_bytes
    if not any(_gpus(subject)) or not most:
        return
    for name, tensor in subject.initializers.items():
        if (count := stored_bytes(tensor)) > most:
            yield _too_large(name, count, subject)
    for info in (*subject.proto.graph.input, *subject.proto.graph.output):
        kind = info.type.tensor_type
        sizes = [dimension.dim_value for dimension in kind.shape.dim]
        bits = external_data.BITS.get(kind.elem_type, 0)
        total = bits // 8
        for size in sizes:
            total *= max(size, 1)
        if total > most and info.name not in subject.initializers:
            yield _too_large(info.name, total, subject)


def _too_large(name: str, count: int, subject: Subject) -> Hit:
    most = subject.target.gpu.buffer_bytes
    return Hit(
        f"The tensor has {count:,} bytes; a GPU of target '{subject.target.id}' is only sure to bind {most:,} bytes "
        f"({most / 2**20:g} MiB) at once.",
        tensor=name,
        fix="Split it, quantize it, or give your own target file a larger [gpu] buffer_bytes.",
    )


@rule("gpu-quantized", "warning")
def gpu_quantized(subject: Subject) -> Iterator[Hit]:
    """Dynamic quantization on a GPU."""
    found = [p for p in subject.nodes if p.node.op_type in _DYNAMIC.get(p.domain, set())]
    for provider in _gpus(subject):
        if found:
            yield Hit(
                f"{len(found):,} nodes of dynamic quantization ({found[0].operator}, ...): they are made for CPUs, and "
                f"on {provider.id} they run on the CPU or not at all.",
                found[0].name,
                fix="For a GPU, keep float weights or quantize them alone (MatMulNBits).",
            )


@rule("graph-capture", "note")
def graph_capture(subject: Subject) -> Iterator[Hit]:
    """Shapes that depend on the data."""
    for provider in _gpus(subject):
        found = [placed for placed in subject.nodes if placed.is_standard(*_DATA_SIZED, "If", "Loop")]
        if found:
            listed = ", ".join(dict.fromkeys(placed.operator for placed in found))
            yield Hit(
                f"What {listed} give has a size that depends on the data, or is computed on a path that does: graph "
                f"capture on {provider.id} cannot be used, and each run waits for the GPU there.",
                found[0].name,
            )


@rule("gpu-wide-numbers", "note")
def gpu_wide_numbers(subject: Subject) -> Iterator[Hit]:
    """64-bit numbers on a GPU."""
    for provider in _gpus(subject):
        wide = {"int64", "uint64", "float64"}
        found = [
            info.name
            for info in subject.proto.graph.input
            if info.name not in subject.initializers and _declared(info.type.tensor_type.elem_type) in wide
        ]
        if found:
            yield Hit(
                f"{_count(found, 'input')} of 64-bit numbers: {provider.id} computes in 32 bits, so what takes them "
                "runs on the CPU.",
                tensor=found[0],
                fix="Where their values fit, take int32 or float32 inputs.",
            )


def _count(names: Sequence[str], noun: str) -> str:
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'}"


def _declared(element: int) -> str:
    return {7: "int64", 13: "uint64", 11: "float64"}.get(element, "")
