"""Which modules of edgekit travel to a device: what ``edgekit-run`` imports, and what that imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

import edgekit

_PACKAGE = Path(edgekit.__file__).parent
_START = "edgekit.device.main"
# Read by hand on the device, from the place where they lie.
_BESIDE = ("edgekit.device.unpack",)


def modules() -> dict[str, Path]:
    """Return the modules by their path inside the folder that is put on the device's path, and where each lies."""
    found: dict[str, Path] = {}
    waiting = [_START, *_BESIDE]
    while waiting:
        name = waiting.pop()
        path = _place(name)
        if path is None or name in found:
            continue
        found[name] = path
        waiting += _packages(name)
        waiting += _imports(path)
    return {path.relative_to(_PACKAGE.parent).as_posix(): path for path in sorted(found.values())}


def _place(name: str) -> Path | None:
    base = _PACKAGE.parent.joinpath(*name.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _packages(name: str) -> Iterator[str]:
    parts = name.split(".")[:-1]
    while parts:
        yield ".".join(parts)
        parts.pop()


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "edgekit")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "edgekit":
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
