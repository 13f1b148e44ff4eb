"""How a number reads: the one place that every report, table and message takes it from."""

import math

# Up to here a number is written out; beyond it nobody counts digits.
_WRITTEN_OUT = 1e9


def figure(value: float, digits: int = 3, *, grouped: bool = True) -> str:
    """Write a number with so many significant digits, or all of its whole ones: 0.00123, 12.3, 1,235, 1.2e-07.

    Never "1e+03": a power of ten stands for what is small or has more than nine digits alone. ``grouped``: with commas
    between thousands; without, a command line takes it back. NaN is "NaN", and infinity "∞".
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    short = f"{value:.{digits}g}"
    if abs(float(short)) < 10**digits or abs(value) >= _WRITTEN_OUT:
        # 999.6 to three digits is "1e+03" too; 1e+12 is as well said without the sign.
        return short.replace("e+", "e") if "e" in short and abs(float(short)) >= _WRITTEN_OUT else short
    return f"{round(value):,}" if grouped else f"{round(value)}"
