"""The contract's schemas are valid, closed, and say the same of the same things."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from edgekit.records.validate import SCHEMAS

DOCUMENTS = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(SCHEMAS.glob("*.json"))}


def inner(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every JSON object inside a schema, itself first."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from inner(item)
    elif isinstance(value, list):
        for item in value:
            yield from inner(item)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_valid(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(DOCUMENTS[name])


def test_the_twin_an_invalid_schema_is_noticed() -> None:
    with pytest.raises(jsonschema.SchemaError):
        jsonschema.Draft202012Validator.check_schema({"type": "number of things"})


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_object_is_closed(name: str) -> None:
    for schema in inner(DOCUMENTS[name]):
        if schema.get("type") == "object":
            assert "additionalProperties" in schema, schema


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_reference_leads_somewhere_and_every_definition_is_used(name: str) -> None:
    used = {schema["$ref"].removeprefix("#/$defs/") for schema in inner(DOCUMENTS[name]) if "$ref" in schema}
    assert used == set(DOCUMENTS[name].get("$defs", {}))


def test_a_definition_is_the_same_in_every_schema() -> None:
    seen: dict[str, Any] = {}
    for file, document in DOCUMENTS.items():
        for name, definition in document.get("$defs", {}).items():
            if file != "page-config.schema.json":
                assert seen.setdefault(name, definition) == definition, f"{name} in {file}"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_keys_are_snake_case(name: str) -> None:
    for schema in inner(DOCUMENTS[name]):
        properties = schema.get("properties", {})
        if isinstance(properties, dict):
            assert all(key == key.lower() and "-" not in key for key in properties)
