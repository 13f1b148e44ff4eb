"""How the person at the terminal would call edgekit again."""

import shutil
import sys
from pathlib import Path


def name() -> str:
    """Return "edgekit" where that word would start this program, else the path that started it (as ``make`` does)."""
    started = Path(sys.argv[0])
    if started.stem != "edgekit":
        return "edgekit"
    found = shutil.which("edgekit")
    return "edgekit" if found and Path(found).resolve() == started.resolve() else sys.argv[0]
