"""The right labels of golden cases, as the user gives them: a CSV or JSON file.

    case,label            one line a sample; a case with several rows has a line for each, in their order
    case,output,label     where the model has several outputs

    {"digit-7": 7, "two-faces": [1, 0]}                                 JSON: by case
    {"output": "scores", "labels": {"digit-7": 7}}                      the same, for one output of several

A label is the index of the class with the highest score, a number or a text that the model gives, or 1 or 0 where the
output is a single score.
"""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgekit.errors import LimitError, UsageError

_MOST_BYTES = 16 << 20
_FORMAT = "The file has lines 'case,label' (or 'case,output,label') under such a heading, or is JSON {case: label}."


@dataclass(frozen=True)
class Label:
    """What one sample is. ``output`` None: of the model's only output."""

    case: str
    output: str | None
    label: str


def load(path: Path) -> tuple[Label, ...]:
    """Read labels. Raises UsageError when the file is not there, not of the format, or holds none."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise LimitError(f"{path} has more than {_MOST_BYTES:,} bytes.", hint="It should hold a line a sample.")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"The labels {path} cannot be read: {error.strerror}.", hint=_FORMAT) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The labels {path} are not UTF-8 text.", hint=_FORMAT) from error
    found = _from_json(path, text) if text.lstrip().startswith("{") else _from_csv(path, text)
    if not found:
        raise UsageError(f"{path} holds no label.", hint=_FORMAT)
    return found


def _from_csv(path: Path, text: str) -> tuple[Label, ...]:
    rows = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
    names = [name.strip() for name in rows.fieldnames or ()]
    if not {"case", "label"} <= set(names) <= {"case", "output", "label"} or len(set(names)) != len(names):
        raise UsageError(f"{path} has the heading '{','.join(names)[:100]}'.", hint=_FORMAT)
    rows.fieldnames = names
    found = []
    try:
        for row in rows:
            fields = {name: (row.get(name) or "").strip() for name in names}
            if None in row or not fields["case"] or not fields["label"]:
                raise UsageError(f"Line {rows.line_num} of {path} is not of the form {','.join(names)}.", hint=_FORMAT)
            found.append(Label(fields["case"], fields.get("output") or None, fields["label"]))
    except csv.Error as error:
        raise UsageError(f"Line {rows.line_num} of {path} cannot be read: {error}.", hint=_FORMAT) from error
    return tuple(found)


def _from_json(path: Path, text: str) -> tuple[Label, ...]:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a JSON file: {str(error)[:200]}", hint=_FORMAT) from error
    output = None
    if isinstance(document.get("labels"), dict):
        output, document = document.get("output"), document["labels"]
    if not (output is None or isinstance(output, str)):
        raise UsageError(f"{path} names an output that is no text.", hint=_FORMAT)
    found: list[Label] = []
    for case, value in document.items():
        labels: Iterable[Any] = value if isinstance(value, list) else [value]
        for label in labels:
            if not isinstance(label, str | int):
                raise UsageError(f"{path}: the label of case '{case[:100]}' is no number or text.", hint=_FORMAT)
            found.append(Label(case, output, str(int(label)) if isinstance(label, bool) else str(label).strip()))
    return tuple(found)
