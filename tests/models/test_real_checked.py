"""``check`` on real models: no false alarm on the CPU, and on a GPU exactly what parity finds."""

import pytest
from check_samples import BOTH, CPU_ALONE, GPU_ALONE, ids
from models import real

from edgekit.check import providers, run

pytestmark = pytest.mark.real_models
TABLE = real.table()
WRONG = {"conv-channels-of-three", "conv-padding-behind"}


@pytest.mark.parametrize("key", TABLE)
def test_a_real_model_is_judged_as_devices_judge_it(key: str) -> None:
    cpu, chain, gpu = run.check_file(real.path(key), [CPU_ALONE, BOTH, GPU_ALONE]).targets
    assert cpu.runs
    assert chain.runs
    assert bool(WRONG & ids(gpu.findings)) == (TABLE[key].webgpu == "wrong")
    assert bool(WRONG & ids(chain.findings)) == (TABLE[key].webgpu == "wrong")
    if providers.of(GPU_ALONE)[0].measured is None:
        pytest.skip("nothing was measured of the GPU's build")
    assert gpu.runs == (TABLE[key].webgpu != "refused")
