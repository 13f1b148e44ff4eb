"""For maintainers: copy what the report inlines of uPlot from node_modules to templates/report/uplot.

    npm ci && python vendor_plot.py

A report opens offline, also one made by an installed package, so the copy travels with the templates. Raise the version
in package.json and run ``npm install`` first. ``test/vendor.test.js`` compares the copy with the package.
"""

import sys
from pathlib import Path

from edgekit.files import write_atomic

WEB = Path(__file__).resolve().parent
FILES = ("dist/uPlot.iife.min.js", "dist/uPlot.min.css", "LICENSE")

if __name__ == "__main__":
    package, target = WEB / "node_modules" / "uplot", WEB.parent / "templates" / "report" / "uplot"
    for name in FILES:
        write_atomic(target / Path(name).name, (package / name).read_bytes())
    sys.stdout.write(f"{target}: {len(FILES)} files\n")
