"""Find the data that travels with the package. The only module that knows where it lies.

In a wheel, ``templates``, ``web`` and ``device_targets`` lie in ``edgekit/_data``. An editable install cannot see
what hatchling's force-include would put there, so the checkout's own folders, beside the package, are tried next.
"""

from pathlib import Path

from edgekit.errors import EdgekitError

_PACKAGE = Path(__file__).resolve().parent


def root(name: str) -> Path:
    """Return the folder (or file) of packaged data called ``name``: "templates", "web", "device_targets"."""
    for parent in (_PACKAGE / "_data", _PACKAGE.parent):
        candidate = parent / name
        if candidate.exists():
            return candidate
    raise EdgekitError(f"edgekit's own data folder '{name}' is missing.", hint="Install edgekit again.")
