"""Numbers read as people write them."""

import re
from pathlib import Path

import pytest

import edgekit
from edgekit.figures import figure


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1.0, "1"), (0.001234, "0.00123"), (1.23e-7, "1.23e-07"), (12.345, "12.3"), (999.4, "999"),
        (999.6, "1,000"), (1000.0, "1,000"), (1234.5, "1,234"), (-45678.9, "-45,679"), (123456789.0, "123,456,789"),
        (1.5e12, "1.5e12"), (float("nan"), "NaN"), (float("inf"), "∞"), (float("-inf"), "-∞"),
    ],
)  # fmt: skip
def test_a_figure_is_plain_and_short(value: float, text: str) -> None:
    assert figure(value) == text


def test_fewer_digits_and_no_commas() -> None:
    assert (figure(0.123456, 2), figure(123.0, 2), figure(99.6, 2)) == ("0.12", "123", "100")
    assert figure(1234.0, grouped=False) == "1234"


def test_no_text_is_formatted_past_it() -> None:
    """A ".3g" of its own would write 1e+03. Settings and sizes, written with ":g", are small."""
    allowed = {"figures.py", "process.py", "facts.py", "plots.py", "child.py"}  # gigabytes, units, data of figures
    files = [path for path in Path(edgekit.__file__).parent.rglob("*.py") if path.name not in allowed]
    own = [path.name for path in files if re.search(r":\.\d[ge]\}", path.read_text(encoding="utf-8"))]
    assert len(files) > 200 and own == []
