"""Names that Android takes: application ids and labels, from titles that come from anywhere."""

import re

from edgekit.bundle import titles
from edgekit.errors import UsageError

_PREFIX = "edgekit.app"
_ID = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*(\.[a-zA-Z][a-zA-Z0-9_]*)+")
_ID_CHARACTERS = 150
# Words of Java, which no part of a package's name may be.
RESERVED = frozenset({
    "abstract", "assert", "boolean", "break", "byte", "case", "catch", "char", "class", "const", "continue",
    "default", "do", "double", "else", "enum", "extends", "false", "final", "finally", "float", "for", "goto",
    "if", "implements", "import", "instanceof", "int", "interface", "long", "native", "new", "null", "package",
    "private", "protected", "public", "return", "short", "static", "strictfp", "super", "switch", "synchronized",
    "this", "throw", "throws", "transient", "true", "try", "void", "volatile", "while",
})  # fmt: skip


def application_id(title: str) -> str:
    """Return the id of the app for a model called ``title``: lower-case ASCII letters, digits and underscores."""
    words = titles.slug(title, "_", 60)
    if not words or not words[0].isalpha() or words in RESERVED:
        words = f"model_{words}".rstrip("_")
    return f"{_PREFIX}.{words}"


def checked_application_id(given: str) -> str:
    """Return ``given``. Raises UsageError when Android would not take it for an application's id."""
    if not _ID.fullmatch(given) or len(given) > _ID_CHARACTERS or set(given.split(".")) & RESERVED:
        raise UsageError(
            f"{given!r} is no id of an Android application.",
            hint="Two or more words of letters, digits and underscores, joined by dots: com.example.classifier.",
        )
    return given


def label(title: str) -> str:
    """Return what stands below the app's icon: one line, without characters that nobody sees."""
    return titles.one_line(title)
