"""The sample documents of the contract are judged here as they are in JavaScript (web/test/records.test.js)."""

import json
from pathlib import Path

import pytest

from edgekit.errors import UsageError
from edgekit.records.validate import validated

SAMPLES = Path(__file__).parents[1] / "models" / "records"
VALID = sorted((SAMPLES / "valid").glob("*.json"))
INVALID = sorted((SAMPLES / "invalid").glob("*.json"))


def schema_of(sample: Path) -> str:
    """Return the schema that a sample is of: the first word of its name."""
    return sample.name.split(".")[0]


def test_there_are_samples_of_both_kinds() -> None:
    assert len(VALID) > 5
    assert len(INVALID) > 5


@pytest.mark.parametrize("sample", VALID, ids=lambda path: path.stem)
def test_a_valid_sample_fits_its_schema(sample: Path) -> None:
    document = json.loads(sample.read_text(encoding="utf-8"))
    assert validated(document, schema_of(sample), sample.name) == document


@pytest.mark.parametrize("sample", INVALID, ids=lambda path: path.stem)
def test_an_invalid_sample_is_refused_by_name(sample: Path) -> None:
    document = json.loads(sample.read_text(encoding="utf-8"))
    with pytest.raises(UsageError, match=sample.name):
        validated(document, schema_of(sample), sample.name)
