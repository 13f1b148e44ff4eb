"""Programs of the system that only some uses of edgekit need, by what they are for, and the Debian packages of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from edgekit.apk import tools as apk
from edgekit.runners import arm64_root


@dataclass(frozen=True)
class ToolSet:
    """``programs``: each program that must be on PATH, and the package that brings it. ``also``: packages more."""

    id: str
    purpose: str
    programs: Mapping[str, str]
    also: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[str, ...]:
        """Every package of the set."""
        return tuple(dict.fromkeys([*self.programs.values(), *self.also]))

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages of programs that are not there."""
        there = {name: any(map(arm64_root.which, _OTHER_NAMES.get(name, (name,)))) for name in self.programs}
        return tuple(dict.fromkeys(package for name, package in self.programs.items() if not there[name]))


_OTHER_NAMES = {"qemu-aarch64-static": arm64_root.QEMU}
TOOL_SETS = (
    ToolSet(
        "emulated",
        "an arm64 Linux on this machine: parity --device emulated",
        MappingProxyType(
            {
                "qemu-aarch64-static": "qemu-user-static",
                "proot": "proot",
                "debootstrap": "debootstrap",
                "fakeroot": "fakeroot",
                "dpkg-deb": "dpkg",
            }
        ),
        ("debian-archive-keyring",),
    ),
    ToolSet("deb", "Debian packages: build --deb", MappingProxyType({"dpkg-deb": "dpkg"})),
    ToolSet("apk", "APKs: build --apk", MappingProxyType(dict(apk.PACKAGES)), (apk.FRAMEWORK_PACKAGE,)),
    ToolSet(
        "tests",
        "edgekit's own tests",
        MappingProxyType(
            {
                "sshd": "openssh-server",
                "ssh": "openssh-client",
                "rsync": "rsync",
                "lintian": "lintian",
                "javac": "default-jdk-headless",
                "enjarify": "enjarify",
                "adb": "adb",
            }
        ),
        ("libandroid-json-java",),
    ),
)


def by_id(name: str) -> ToolSet:
    """Return the set called ``name``, which is one of ``TOOL_SETS``."""
    return next(one for one in TOOL_SETS if one.id == name)
