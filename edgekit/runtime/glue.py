"""What the runtime's glue (the ``.mjs`` beside a ``.wasm``) expects of its wasm, read from its text.

Emscripten minifies the names of imports and exports anew for each build, so glue and wasm of different builds meet
under the same short names with other meanings, or miss names. The glue holds both lists in plain text:
``h._OrtRun=c.sb;`` reads the export ``sb``; ``Pa={T:Qa,f:Ra}`` with ``return{a:Pa}`` gives the imports ``a.T`` and
``a.f``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

# The first release that is linked as this module reads it: 1.22.0 and 1.27.0 are not.
READS = "1.29.0"
_NAME = r"[A-Za-z_$][\w$]*"
_RUN = re.compile(rf"[\w$]+\._OrtRun=({_NAME})\.({_NAME})[;,]")
_GIVEN = re.compile(rf"return\{{((?:{_NAME}:{_NAME},?)+)\}}")
_PAIR = re.compile(rf"({_NAME}):({_NAME})")


@dataclass(frozen=True)
class Glue:
    """``reads``: each export that the glue takes, and the name it gives it; ``gives``: the imports, by module."""

    reads: Mapping[str, str]
    gives: Mapping[str, frozenset[str]]


def parse(text: str) -> Glue | None:
    """Read a minified emscripten glue; None when it is not one that holds both lists."""
    run = _RUN.search(text)
    gives = _gives(text)
    if run is None or not gives:
        return None
    return Glue(_reads(text, run), gives)


def _reads(text: str, run: re.Match[str]) -> dict[str, str]:
    """Collect the run of assignments from the exports' variable around the one of ``_OrtRun``."""
    variable = re.escape(run[1])
    assignment = re.compile(rf"((?:[\w$.]+=)+){variable}\.({_NAME})[;,]\s*")
    # The run is one unbroken chain of such assignments; find the chain that holds _OrtRun.
    for chain in re.finditer(rf"(?:(?:[\w$.]+=)+{variable}\.{_NAME}[;,]\s*)+", text):
        if chain.start() <= run.start() < chain.end():
            return {
                name: given.rstrip("=").split("=")[-1].split(".")[-1] for given, name in assignment.findall(chain[0])
            }
    return {}


def _gives(text: str) -> dict[str, frozenset[str]]:
    for returned in _GIVEN.finditer(text):
        gives = {module: _members(text, variable) for module, variable in _PAIR.findall(returned[1])}
        if all(gives.values()):
            return gives
    return {}


def _members(text: str, variable: str) -> frozenset[str]:
    literal = re.search(rf"(?<![\w$.]){re.escape(variable)}=\{{((?:{_NAME}:{_NAME},?\s*)+)\}}", text)
    return frozenset(name for name, _ in _PAIR.findall(literal[1])) if literal else frozenset()
