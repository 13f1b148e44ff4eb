"""Packages that only some commands need: what is not there is an error that says how to get it."""

import importlib.util

from edgekit.errors import MissingToolError


def need(module: str, extra: str, purpose: str) -> None:
    """Raise MissingToolError, with the line that installs it, when ``module`` of the extra ``extra`` is missing."""
    if importlib.util.find_spec(module) is None:
        raise MissingToolError(
            f"{purpose} needs the package '{module}', which is not installed.",
            hint=f"Install it: pip install 'edgekit[{extra}]'",
        )
