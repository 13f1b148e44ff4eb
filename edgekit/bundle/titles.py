"""What a title becomes: one line that can be read, or a name of letters and digits. Titles come from anywhere."""

import hashlib
import re
import unicodedata

_LONGEST_LINE = 100
_HASH_CHARACTERS = 6


def one_line(title: str) -> str:
    """Return a title as one line of at most 100 characters, without characters that nobody sees; "Model" for none."""
    visible = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in title)
    return " ".join(visible.split())[:_LONGEST_LINE].strip() or "Model"


def slug(title: str, separator: str, most: int) -> str:
    """Return a name of lower-case ASCII letters and digits, in words joined by ``separator``, of ``most`` characters.

    Where letters or digits of the title are lost, a hash of the title stands at the end: titles in other alphabets
    would all have one name, and a package or an app that is installed would take the place of another. So it is with
    marks on letters ("Schön", "Schon"). Empty for a title without a letter or digit.
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", title).lower() if not unicodedata.combining(c))
    name = re.sub(r"[^a-z0-9]+", separator, plain).strip(separator)
    if len(name) <= most and all(c.isascii() for c in title if c.isalnum()):
        return name
    digest = hashlib.sha256(title.encode(errors="surrogatepass")).hexdigest()[:_HASH_CHARACTERS]
    start = name[: most - len(separator) - _HASH_CHARACTERS].strip(separator)
    return f"{start}{separator}{digest}" if start else f"model{separator}{digest}"
