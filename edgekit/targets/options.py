"""What a target file states of one kind of target alone, as tables named after the kind: [linux], [android]."""

from dataclasses import dataclass

WEB, LINUX, ANDROID = KINDS = ("web", "linux", "android")
# The package that brings onnxruntime to targets of a kind.
PACKAGES = {WEB: "onnxruntime-web", LINUX: "onnxruntime", ANDROID: "onnxruntime-android"}


@dataclass(frozen=True)
class Linux:
    """A computer that runs Linux, its own Python, and onnxruntime in it.

    ``machine``: as ``uname -m`` says it. ``systems``: what the device may run, as /etc/os-release says it, "id" or
    "id:codename"; empty: any. ``pythons``: the versions of Python that those systems have; wheels of each travel.
    ``cores``: the cores that inference is pinned to; empty: the system's choice. ``cpu``: what the processor is, a name
    that the table of wheels that crash knows. ``memory_max_bytes``: what the service may take; 0: no bound.
    """

    machine: str = "aarch64"
    systems: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    cores: tuple[int, ...] = ()
    cpu: str = ""
    memory_max_bytes: int = 0


@dataclass(frozen=True)
class Android:
    """An Android device. ``abis``: the processors that the app has native code for. ``min_sdk``, ``target_sdk``: API
    levels. ``page``: the web target whose page an APK without native code shows; "": there is none.
    """

    abis: tuple[str, ...] = ("arm64-v8a", "x86_64")
    min_sdk: int = 24
    target_sdk: int = 36
    page: str = ""
