"""What the system tells of this process and machine: memory, temperature, throttling. None: it does not tell."""

import os
import time
from contextlib import suppress
from pathlib import Path

_PI_FLAGS = {
    0: "under-voltage now", 1: "frequency capped now", 2: "throttled now", 3: "soft temperature limit now",
    16: "under-voltage since boot", 17: "frequency capped since boot", 18: "throttled since boot",
    19: "soft temperature limit since boot",
}  # fmt: skip


def resident_bytes() -> int | None:
    """Return the memory that this process holds now."""
    return _status("VmRSS")


def peak_bytes() -> int | None:
    """Return the most memory that this process has held."""
    return _status("VmHWM")


def _status(key: str) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024
    return None


def seconds_since_start() -> float | None:
    """Return how long ago the system started this process: what a cold start has taken so far."""
    with suppress(OSError, ValueError, IndexError):
        # The name of the program, in brackets, may hold spaces; field 22 is the start in ticks since boot.
        fields = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        passed = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return passed if 0 <= passed < 86400 else None
    return None


def celsius() -> float | None:
    """Return the temperature of the hottest zone."""
    found = []
    for path in Path("/sys/class/thermal").glob("thermal_zone*/temp"):
        with suppress(OSError, ValueError):
            found.append(int(path.read_text(encoding="ascii")) / 1000)
    return max(found, default=None)


def throttled() -> tuple[str, ...] | None:
    """Return what a Raspberry Pi's firmware says of its power and heat, in words; empty: all is well."""
    for path in Path("/sys/devices/platform/soc").glob("*/get_throttled"):
        with suppress(OSError, ValueError):
            flags = int(path.read_text(encoding="ascii").strip(), 16)
            return tuple(said for bit, said in _PI_FLAGS.items() if flags >> bit & 1)
    return None


def megahertz() -> float | None:
    """Return the present frequency of the first core."""
    with suppress(OSError, ValueError):
        place = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")
        return int(place.read_text(encoding="ascii")) / 1000
    return None
