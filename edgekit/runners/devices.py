"""Devices that run a bundle of their own kind and bring a record back: which module reaches one, by its address."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from edgekit import runners
from edgekit.bundle.open import Bundle
from edgekit.errors import UsageError, did_you_mean
from edgekit.progress import Progress
from edgekit.records.run_record import RunRecord
from edgekit.runners.page import Ask


class DeviceRunner(Protocol):
    """A module of ``edgekit/runners`` that reaches a device, and is named after the scheme of its address.

    ``DEVICE``: what such an address looks like, for messages. ``DEVICE_KINDS``: the kinds of bundle that it can run.
    """

    DEVICE: str
    DEVICE_KINDS: tuple[str, ...]

    def run_device(self, bundle: Bundle, ask: Ask, address: str, *, progress: Progress) -> RunRecord:
        """Run the bundle on the device at ``address`` ("": the only one there is) and return its record.

        Raises UsageError for an address that is none, MissingToolError for a program or device that is not there,
        ParityError when the device gave no record.
        """


def find(address: str) -> DeviceRunner:
    """Return the runner for an address such as "ssh://pi@host". Raises UsageError where no module knows its scheme."""
    scheme = address.partition(":")[0]
    known = {name: runner for name in modules() if (runner := _as_device(load(name))) is not None}
    if scheme not in known:
        looks = ", ".join(runner.DEVICE for runner in known.values())
        raise UsageError(
            f"'{address}' is the address of no device that edgekit reaches.{did_you_mean(scheme, known)}",
            hint=f"Addresses: {looks}.",
        )
    return known[scheme]


def named(name: str) -> DeviceRunner | None:
    """Return the device runner called ``name``; None where there is no such module, or it is none."""
    return _as_device(load(name)) if name in modules() else None


def _as_device(module: ModuleType) -> DeviceRunner | None:
    return cast(DeviceRunner, module) if hasattr(module, "DEVICE") else None


def modules() -> tuple[str, ...]:
    """Return the names of the modules in ``edgekit/runners``."""
    return tuple(sorted(path.stem for path in Path(runners.__path__[0]).glob("*.py") if path.stem != "__init__"))


def load(name: str) -> ModuleType:
    """Import a module of ``edgekit/runners``; its name was looked up in ``modules`` before."""
    return importlib.import_module(f"edgekit.runners.{name}")
