"""The child process of ``edgekit.desktop.reference.callable_run``: import a user's callable and give it every feed."""

import importlib
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from edgekit.desktop.exchange import StoredFeed, StoredResult, load_feed, read_json, save_result, write_json
from edgekit.records.tensors import Array, Value, value_of

Reference = Callable[[dict[str, Array]], Mapping[str, Any]]


def main(folder: Path) -> None:
    """Do what ``folder/request.json`` asks. Errors of the import end the process, those of a call only that call."""
    request = read_json(folder / "request.json")
    sys.path.insert(0, request["folder"])
    module, _, name = request["spec"].partition(":")
    started = time.perf_counter()
    reference: Reference = attrgetter(name)(importlib.import_module(module))
    if not callable(reference):
        raise TypeError(f"{request['spec']} is not callable")
    import_ms = (time.perf_counter() - started) * 1000
    write_json(folder / "session.json", {"python": platform.python_version(), "import_ms": import_ms})
    for index in range(request["count"]):
        save_result(folder, index, ask(reference, load_feed(folder, index)))


def ask(reference: Reference, feed: StoredFeed) -> StoredResult:
    """Call once, or step by step where outputs are fed back."""
    inputs = {value.name: value.array.copy() for value in feed.inputs if value.array is not None}
    links = feed.feed_back.links if feed.feed_back else {}
    outputs: tuple[Value, ...] = ()
    run_ms: list[float] = []
    try:
        for _ in range(feed.runs):
            started = time.perf_counter()
            given = reference(dict(inputs))
            run_ms.append((time.perf_counter() - started) * 1000)
            if not isinstance(given, Mapping):
                raise TypeError(f"it returned {type(given).__name__}, not a dict of output name to array")
            outputs = tuple(value_of(str(name), np.asarray(array)) for name, array in given.items())
            arrays = {value.name: value.array for value in outputs if value.array is not None}
            inputs |= {target: arrays[source] for target, source in links.items()}
    except Exception as error:
        return StoredResult((), traceback.format_exception_only(error)[-1].strip(), ())
    return StoredResult(outputs, None, tuple(run_ms))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
