"""What check says of WebGPU is so: the samples on two rules' pages are computed wrongly, and their twins rightly."""

from pathlib import Path

import pytest
from check_samples import page
from models_text import write

from edgekit import parity, pipeline
from edgekit.kinds.config import BuildConfig
from edgekit.parity import ParityOptions
from edgekit.targets import load as targets

pytestmark = pytest.mark.browser


def gpu_target() -> str:
    """The id of a target of edgekit's own that tries a GPU first."""
    return next(name for name in targets.ids() if len(targets.load(name).runtime.variants) > 2)


def passes(text: str, folder: Path, name: str) -> tuple[bool, tuple[str, ...]]:
    """Build a model for a GPU, replay its cases there, and return whether parity passed and what build warned of."""
    model = write(text, folder, f"{name}.onnx")
    built = pipeline.build(BuildConfig(model, gpu_target(), folder / name, trim_runtime=False))
    result = parity.verify(built.folder, ParityOptions(gpu="software"))
    assert result.verdict.environment is not None
    assert result.verdict.compared > 0
    return result.verdict.passed, built.warnings


@pytest.mark.parametrize(
    "rule_id", ["conv-channels-of-three", pytest.param("conv-padding-behind", marks=pytest.mark.sweep)]
)
def test_a_sample_is_wrong_on_a_gpu_and_its_twin_is_right(rule_id: str, tmp_path: Path) -> None:
    right, warnings = passes(page(rule_id).found, tmp_path, "found")
    assert not right
    assert any(warning.endswith(f"[{rule_id}]") for warning in warnings)
    right, warnings = passes(page(rule_id).not_found, tmp_path, "twin")
    assert right
    assert not any(rule_id in warning for warning in warnings)
