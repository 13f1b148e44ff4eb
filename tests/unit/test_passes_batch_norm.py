import numpy as np
import pytest
from trimming import kept

X = np.random.default_rng(3).standard_normal((2, 2, 3, 3)).astype(np.float32)
WEIGHTS = """float[2] s = {0.7, 1.3}, float[2] b = {0.1, 0.2}, float[2] m = {0.3, -0.1}, float[2] v = {0.9, 1.7},
    float[2] s2 = {-0.7, 1.1}, float[2] b2 = {0.5, -0.2}, float[2] m2 = {3.3, -1.1}, float[2] v2 = {0.1, 40.7}"""


def model(nodes: str) -> str:
    return f"g (float[N, 2, H, W] x) => (float[N, 2, H, W] y) <{WEIGHTS}> {{ {nodes} }}"


def test_normalizations_of_one_width_share_their_statistics() -> None:
    done = kept(model("a = BatchNormalization(x, s, b, m, v) y = BatchNormalization(a, s2, b2, m2, v2)"), {"x": X})

    assert len(done.proto.graph.initializer) == 6
    first, second = done.proto.graph.node
    assert list(first.input[3:]) == list(second.input[3:])
    assert list(first.input[1:3]) == ["s", "b"]


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_every_bit_stays(scale: float) -> None:
    rng = np.random.default_rng(5)
    texts = []
    for name in ("s", "b", "m", "v", "s2", "b2", "m2", "v2"):
        numbers = rng.standard_normal(64).astype(np.float32)
        numbers = np.abs(numbers) if name.startswith("v") else numbers
        texts.append(f"float[64] {name} = {{{', '.join(str(n) for n in numbers)}}}")
    text = f"""g (float[1, 64, 4] x) => (float[1, 64, 4] y) <{", ".join(texts)}> {{
        a = BatchNormalization <epsilon = 0.001> (x, s, b, m, v) y = BatchNormalization(a, s2, b2, m2, v2)
    }}"""
    x = (rng.standard_normal((1, 64, 4)) * scale).astype(np.float32)

    assert "statistics of normalizations" in kept(text, {"x": x}).changed_by


def test_a_single_normalization_gains_nothing_and_stays() -> None:
    done = kept(model("y = BatchNormalization(x, s, b, m, v)"), {"x": X})

    assert "statistics of normalizations" not in done.changed_by


def test_weights_that_others_use_stay() -> None:
    nodes = """a = BatchNormalization(x, s, b, m, v) c = BatchNormalization(a, s2, b2, m2, v2)
        t = Constant <value_ints = [2, 1, 1]> () k = Reshape(m, t) l = Reshape(m2, t) p = Add(k, l) y = Add(c, p)"""

    done = kept(model(nodes), {"x": X}, skip=["constant folding"])

    assert "statistics of normalizations" not in done.changed_by


def test_a_normalization_in_training_stays() -> None:
    text = f"""g (float[N, 2, H, W] x) => (float[N, 2, H, W] y) <{WEIGHTS}> {{
        a, am, av = BatchNormalization <training_mode = 1> (x, s, b, m, v)
        y, ym, yv = BatchNormalization <training_mode = 1> (a, s2, b2, m2, v2)
    }}"""

    assert "statistics of normalizations" not in kept(text, {"x": X}).changed_by
