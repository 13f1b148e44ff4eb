"""The one Jinja environment: undefined names are errors, and each output language has its own escaping."""

import json
import re
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


def android_text(value: str) -> str:
    """Escape text for an attribute or a string of Android's XML, before XML's own escaping: aapt2 reads both.

    There a backslash, quotes and what stands first (a reference "@", an attribute "?") have meanings of their own.
    """
    text = value.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"')
    return f"\\{text}" if text.startswith(("@", "?")) else text


def java_string(value: str) -> Markup:
    """Escape text for between the quotes of a string of Java; the result is ASCII, whatever the file's encoding is."""
    units = value.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    # An escape of the compiler's own, \\uXXXX, would be read before the quotes are: so what it would make of a quote, a
    # backslash or the end of a line is written as an escape of the string's.
    text = "".join(
        chr(code)
        if 0x20 <= code < 0x7F and chr(code) not in '"\\'
        else f"\\{code:03o}"
        if code < 0x80
        else f"\\u{code:04x}"
        for code in codes
    )
    return Markup(text)  # noqa: S704  nothing but printable ASCII without quotes, and escapes


def java_comment(value: str) -> Markup:
    """Make text harmless in a comment of Java: only what cannot end it, or mean anything to javadoc, stays."""
    return Markup(re.sub(r"[^A-Za-z0-9 _.,:()\[\]-]", "?", value))  # noqa: S704  letters, digits and these


def markdown(value: str) -> Markup:
    """Escape one line of text for Markdown, as that does: what would begin a tag, code, emphasis or a link."""
    return Markup(re.sub(r"([\\`*<\[&])", r"\\\1", value))  # noqa: S704  a text file, in which nothing is HTML


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
    made.filters["android_text"] = android_text
    made.filters["java_string"] = java_string
    made.filters["java_comment"] = java_comment
    made.filters["markdown"] = markdown
    return made


def render(folder: Path, template: str, context: dict[str, Any]) -> str:
    """Render ``template`` of ``folder`` with ``context``. The same context gives the same text."""
    return environment(folder).get_template(template).render(context)
