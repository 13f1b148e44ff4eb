"""The one Jinja environment: undefined names are errors, and each output language has its own escaping."""

import json
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

# What could end or open an element inside <script type="application/json">, and the line separators of old JavaScript.
_SCRIPT_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def script_json(value: Any) -> Markup:
    """Encode ``value`` as JSON that is safe inside an HTML script element of type application/json."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
    for character, escape in _SCRIPT_ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)  # noqa: S704  every character that HTML reads is escaped above


def environment(folder: Path) -> jinja2.Environment:
    """Return the environment for the templates in ``folder``; what is rendered is escaped as HTML."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["script_json"] = script_json
    return made


def render(folder: Path, template: str, context: dict[str, Any]) -> str:
    """Render ``template`` of ``folder`` with ``context``. The same context gives the same text."""
    return environment(folder).get_template(template).render(context)
