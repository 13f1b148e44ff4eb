"""Refuse what a target's table [linux] or [android] states with the right types, and cannot be all the same.

What would be found only on the device (a service that systemd does not start, a configuration that the runner refuses,
a project that Gradle does not build) is found here, where the file is read.
"""

import re
from collections.abc import Sequence
from typing import Any

from edgekit.errors import UsageError
from edgekit.targets.options import Android, Linux

# What os-release(5) allows in ID and VERSION_CODENAME.
_SYSTEM = re.compile(r"[a-z0-9._-]+(?::[a-z0-9._-]+)?")
_PYTHON = re.compile(r"3\.[0-9]{1,3}")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
# Android 7, the oldest that onnxruntime-android takes.
_OLDEST_SDK = 24


def check_linux(linux: Linux, file: str) -> None:
    """Raise UsageError for a machine, systems, versions of Python, cores or a bound of memory that cannot be."""
    if not _NAME.fullmatch(linux.machine):
        raise UsageError(f"{file}: 'linux.machine' is no name of a processor.", hint='As uname -m says it: "aarch64".')
    if linux.cpu and not _NAME.fullmatch(linux.cpu):
        raise UsageError(f"{file}: 'linux.cpu' is no name of a processor.", hint='Such as "cortex-a72".')
    _each_once("linux.systems", linux.systems, file)
    _each_once("linux.pythons", linux.pythons, file)
    _each_once("linux.cores", linux.cores, file)
    for system in linux.systems:
        if not _SYSTEM.fullmatch(system):
            raise UsageError(
                f"{file}: 'linux.systems' holds '{system}', which no system calls itself.",
                hint='As /etc/os-release has them: "debian", or "debian:bookworm".',
            )
    if not linux.pythons:
        raise UsageError(f"{file}: 'linux.pythons' is empty.", hint='Name a version of Python, such as "3.11".')
    for python in linux.pythons:
        if not _PYTHON.fullmatch(python):
            raise UsageError(
                f"{file}: 'linux.pythons' holds '{python}', which is no version of Python.", hint='Such as "3.11".'
            )
    if any(core < 0 for core in linux.cores):
        raise UsageError(f"{file}: 'linux.cores' holds a number below 0.", hint="Cores are counted from 0.")
    if linux.memory_max_bytes < 0:
        raise UsageError(f"{file}: 'linux.memory_max_bytes' must be 0 (no bound) or more.")


def check_android(android: Android, file: str) -> None:
    """Raise UsageError for API levels that cannot be, and an ABI that is named twice."""
    _each_once("android.abis", android.abis, file)
    if android.min_sdk < _OLDEST_SDK:
        raise UsageError(
            f"{file}: 'android.min_sdk' is {android.min_sdk}: onnxruntime-android takes no Android older than API "
            f"level {_OLDEST_SDK}."
        )
    if android.target_sdk < android.min_sdk:
        raise UsageError(
            f"{file}: 'android.target_sdk' is {android.target_sdk}, which is below 'android.min_sdk', "
            f"{android.min_sdk}."
        )


def _each_once(place: str, items: Sequence[Any], file: str) -> None:
    twice = [item for item in items if items.count(item) > 1]
    if twice:
        raise UsageError(f"{file}: '{place}' names {twice[0]} twice.", hint="Name each once.")
