"""The wrapper that is generated for a model: Java that compiles, whatever the model's names are."""

import re
from pathlib import Path

import jvm
import pytest
from android_bundle import needs
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekit import render, resources
from edgekit.bundle import android_wrapper as wrappers
from edgekit.bundle.android_names import RESERVED
from edgekit.errors import ModelError
from edgekit.facts.survey import Argument
from edgekit.targets.options import ANDROID

pytestmark = needs("apk", "tests")

HOSTILE = [
    "", "class", "1st", "a b", "a-b", "a_b", "aB", "inputs", "model", "*/ evil", "\\u002a/ evil", '"; evil(); //', "$x",
    "\n", "\u2028", "é☃", "😀", "\\", "\\u0022", "toString", "hashCode", "wait", "RANK_KNOWN", "RUN", "{{ x }}", "<b>",
    "x" * 300, "數字", "\x00", "%s", "`", "@Override", "A", "a", "Tensor", "System",
]  # fmt: skip


def argument(name: str, dtype: str | None = "float32", shape: tuple[int | str | None, ...] | None = (1, 2)) -> Argument:
    return Argument(name, f"tensor({dtype})" if dtype else "seq(tensor(float))", dtype, shape)


def rendered(wrapper: wrappers.Wrapper) -> str:
    folder = resources.root("templates") / ANDROID
    context = {name: getattr(wrapper, name) for name in wrapper.__dataclass_fields__}
    return render.render(folder, "core/src/main/java/edgekit/model/Model.java.j2", context)


def compile_all(core_classes: Path, folder: Path, *described: wrappers.Wrapper) -> None:
    sources = []
    for wrapper in described:
        sources.append(folder / f"{wrapper.class_name}.java")
        sources[-1].write_text(rendered(wrapper), encoding="ascii")
    jvm.compile_java(sources, folder, release=8, classes=[core_classes])


def test_hostile_names_give_java_that_compiles(core_classes: Path, tmp_path: Path) -> None:
    """Each as an input and as an output, all in one model, and titles of all kinds, every warning an error."""
    ports = [argument(name) for name in HOSTILE]
    described = [wrappers.describe("All of them", ports, ports)]
    kinds = [
        argument("known", "int64", (3, 4)),
        argument("scalar", "float32", ()),
        argument("text", "string", (2,)),
        argument("large", "uint8", (3_000_000_000,)),
        argument("symbolic", "bool", ("batch */", None, 3)),
        argument("any", "float16", None),
    ]
    described.append(wrappers.describe("Kinds", kinds, [argument("maps", None, None)]))
    described.append(wrappers.describe("Plain", kinds[:3], kinds[:1]))
    described.append(wrappers.describe("Nothing", [], [argument("y")]))
    described += [wrappers.describe(f"{title} {n}", [argument("x")], []) for n, title in enumerate(HOSTILE[:12])]
    compile_all(core_classes, tmp_path, *described)


def test_a_wrapper_says_what_goes_in_and_what_comes_out() -> None:
    inputs = [argument("input image", "float32", ("batch", 3, 224, 224))]
    wrapper = wrappers.describe("mobile net-v2", inputs, [argument("Scores")])
    assert wrapper.class_name == "MobileNetV2Model"
    text = rendered(wrapper)
    assert "public Outputs infer(Tensor inputImage)" in text
    assert 'INPUT_INPUT_IMAGE = "input image";' in text
    assert "expect(inputs, INPUT_INPUT_IMAGE, Dtype.FLOAT32, -1, 3, 224, 224, RANK_KNOWN);" in text
    assert "float32 [batch, 3, 224, 224]" in text
    assert "public final Tensor scores;" in text
    assert not wrapper.all_plain


@given(st.lists(st.text(st.characters(), max_size=20), min_size=1, max_size=8))
@settings(max_examples=60)
def test_identifiers_are_ones_and_never_the_same_twice(names: list[str]) -> None:
    wrapper = wrappers.describe(names[0], [argument(n) for n in names], [argument(n) for n in names])
    for ports in (wrapper.inputs, wrapper.outputs):
        fields = [port.field for port in ports]
        assert len(set(fields)) == len(fields)
        assert all(f.isascii() and f.isidentifier() and f not in RESERVED for f in fields)
    constants = [port.constant for port in (*wrapper.inputs, *wrapper.outputs)]
    assert len(set(constants)) == len(constants)
    assert wrapper.class_name.isidentifier()
    text = rendered(wrapper)
    assert text.isascii()
    assert "\x00" not in text


def test_what_java_could_not_take_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"The input 'list' is seq\(tensor\(float\)\)"):
        wrappers.describe("t", [argument("list", None, None)], [])
    with pytest.raises(ModelError, match="whose name has 70,000 characters"):
        wrappers.describe("t", [argument("x" * 70_000)], [])
    with pytest.raises(ModelError, match="has 300 inputs"):
        wrappers.describe("t", [argument(f"x{n}") for n in range(300)], [])


@given(st.text(st.characters()))
def test_a_string_of_java_holds_nothing_that_ends_it(text: str) -> None:
    escaped = str(render.java_string(text))
    assert escaped.isascii()
    assert not set(escaped) & set('"\n\r')
    # Every backslash begins one of the two escapes, so that none is before another, or at the end.
    assert re.fullmatch(r"([^\\]|\\[0-1][0-7]{2}|\\u[0-9a-f]{4})*", escaped)
