import numpy as np
import pytest
from trimming import kept

X = np.random.default_rng(3).standard_normal((1, 1, 5, 5)).astype(np.float32)


def attributes(text: str, output: str = "float[A, B, C, D]") -> set[str]:
    model = (
        f"g (float[1, 1, 5, 5] x) => ({output} y) <float[1, 1, 3, 3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}> {{ {text} }}"
    )
    return {attribute.name for node in kept(model, {"x": X}).proto.graph.node for attribute in node.attribute}


def test_defaults_go() -> None:
    stated = 'auto_pad = "NOTSET", dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]'

    assert attributes(f"y = Conv <kernel_shape = [3, 3], {stated}> (x, w)") == {"kernel_shape"}


@pytest.mark.parametrize(
    "stated", ["dilations = [1, 2]", "pads = [0, 1, 0, 1]", "strides = [2, 2]", 'auto_pad = "SAME_UPPER"']
)
def test_what_is_no_default_stays(stated: str) -> None:
    assert attributes(f"y = Conv <{stated}> (x, w)") == {stated.split()[0]}


def test_the_default_of_the_version_that_is_imported_counts() -> None:
    """Softmax had axis 1 until opset 12, and -1 since."""
    for opset, gone in ((12, 1), (13, -1)):
        for axis in (1, -1):
            model = f"""<ir_version: 8, opset_import: ["" : {opset}]>
            g (float[1, 1, 5, 5] x) => (float[1, 1, 5, 5] y) {{ y = Softmax <axis = {axis}> (x) }}"""

            left = kept(model, {"x": X}).proto.graph.node[0].attribute

            assert bool(left) == (axis != gone)


def test_a_number_that_is_nearly_the_default_stays() -> None:
    assert attributes("y = LeakyRelu <alpha = 0.0100001> (x)") == {"alpha"}
    assert attributes("y = LeakyRelu <alpha = 0.01> (x)") == set()


def test_a_foreign_operator_keeps_all() -> None:
    from trimming import passes

    model = """<ir_version: 8, opset_import: ["" : 17, "my.own" : 1]> g (float[1] x) => (float[1] y) {
        y = my.own.Conv <group = 1> (x) }"""

    assert [attribute.name for attribute in passes(model).proto.graph.node[0].attribute] == ["group"]
