"""Check a JSON document against the schema of the contract."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from edgekit.errors import UsageError

SCHEMAS = Path(__file__).parent / "schema"


@cache
def _validator(name: str) -> Any:
    import jsonschema

    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def validated(document: Any, schema: str, what: str) -> dict[str, Any]:
    """Return ``document`` when it fits ``schema`` ("cases", "record", "verdict", "manifest", "page-config").

    Raises UsageError that names ``what`` and the place in it otherwise. On a device, where no schemas travel, nothing
    is checked: what is read there was written by edgekit, and its hash is the manifest's.
    """
    if not SCHEMAS.is_dir():
        checked: dict[str, Any] = document
        return checked
    first = next(iter(_validator(schema).iter_errors(document)), None)
    if first is not None:
        import jsonschema

        error = jsonschema.exceptions.best_match([first]) or first  # of "this or null", what is wrong with "this"
        place = "/".join(str(part) for part in error.absolute_path) or "the top"
        raise UsageError(f"{what} does not fit the contract at {place}: {error.message[:300]}")
    result: dict[str, Any] = document
    return result
