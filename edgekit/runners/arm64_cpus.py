"""Processors that an emulated device plays: QEMU runs their instructions, and files say of them what Linux would.

onnxruntime chooses its kernels by these files. Without them it would read those of this machine, and fail.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgekit.files import write_atomic
from edgekit.runtime import cache

CORES = 4
_BASE = "fp asimd evtstrm crc32 cpuid"
_FORMAT = 1


@dataclass(frozen=True)
class Processor:
    """``part``: its number in ARM's list. ``features``: as /proc/cpuinfo of the device names them."""

    part: str
    features: str


# As Linux shows them on a Raspberry Pi Zero 2 W, 4 and 5. Those of the first two lack the dot product (asimddp).
KNOWN: Mapping[str, Processor] = {
    "cortex-a53": Processor("0xd03", _BASE),
    "cortex-a72": Processor("0xd08", _BASE),
    "cortex-a76": Processor(
        "0xd0b",
        "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp",
    ),
}
# What is not known is told to be the least: a program that is told too little only runs slower.
_LEAST = KNOWN["cortex-a53"]


def files(cpu: str) -> dict[Path, str]:
    """Return the files that describe a processor, and where they lie on a device; they are written where need be."""
    processor = KNOWN.get(cpu, _LEAST)
    folder = cache.folder() / "arm64" / f"cpu-{processor.part}-{_FORMAT}"
    core = (
        f"BogoMIPS\t: 108.00\nFeatures\t: {processor.features}\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
        f"CPU variant\t: 0x0\nCPU part\t: {processor.part}\nCPU revision\t: 0\n\n"
    )
    contents = {
        "cpuinfo": "".join(f"processor\t: {number}\n{core}" for number in range(CORES)),
        "cpu/possible": f"0-{CORES - 1}\n",
        "cpu/present": f"0-{CORES - 1}\n",
        "cpu/online": f"0-{CORES - 1}\n",
    }
    with cache.writing():
        for name, text in contents.items():
            if not (folder / name).is_file() or (folder / name).read_text(encoding="ascii") != text:
                write_atomic(folder / name, text.encode())
    return {folder / "cpuinfo": "/proc/cpuinfo", folder / "cpu": "/sys/devices/system/cpu"}
