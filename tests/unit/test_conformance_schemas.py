"""What schemas say of dtypes."""

import pytest

from edgekit.conformance import schemas


def bound(op_type: str, opset: int, inputs: list[str | None], outputs: list[str | None] | None = None) -> object:
    schema = schemas.schema("", op_type, opset)
    assert schema is not None
    return schemas.bind(schema, inputs, outputs or [])


def test_type_variables_get_the_dtypes_of_the_arguments() -> None:
    assert bound("Add", 14, ["float32", "float32"]) == ("float32",)
    assert bound("Cast", 13, ["float32"], ["int64"]) == ("float32", "int64")
    assert bound("Cast", 13, ["float32"]) == ("float32", None)
    assert bound("Gather", 13, ["string", "int32"], ["string"]) == ("string", "int32")


def test_arguments_of_one_variable_must_agree() -> None:
    assert bound("Add", 14, ["float32", "int32"]) is None
    assert bound("Relu", 14, ["float32"], ["float16"]) is None


def test_a_variadic_argument_repeats_and_others_do_not() -> None:
    assert bound("Concat", 13, ["int8", "int8", "int8"]) == ("int8",)
    assert bound("Relu", 14, ["float32", "float32"]) is None


def test_the_schema_in_force_is_the_newest_that_is_not_too_new() -> None:
    versions = [schema.since_version for opset in (7, 12, 13, 14, 20) if (schema := schemas.schema("", "Add", opset))]
    assert versions == [7, 7, 13, 14, 14]
    assert schemas.schema("", "Gelu", 19) is None
    assert schemas.schema("", "Upsample", 10) is None, "it is deprecated there"
    assert schemas.schema("ai.onnx", "Add", 14) is not None
    assert schemas.schema("my.company", "Add", 14) is None


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("tensor(float)", "float32"),
        ("tensor(double)", "float64"),
        ("tensor(int4)", "int4"),
        ("seq(tensor(float))", None),
    ],
)
def test_type_texts_become_dtypes(text: str, dtype: str | None) -> None:
    assert schemas.dtype_of_text(text) == dtype


def test_every_tensor_dtype_of_onnx_has_a_name() -> None:
    assert schemas.DTYPE_OF[1] == "float32"
    assert schemas.DTYPE_OF[11] == "float64"
    assert schemas.DTYPES["bfloat16"] == 16
