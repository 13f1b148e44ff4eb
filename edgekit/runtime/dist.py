"""A folder with the runtime's files, checked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from edgekit.errors import UsageError
from edgekit.runtime.pins import Variant


@dataclass(frozen=True)
class RuntimeDist:
    """The runtime's files: ``files`` maps each file name in ``folder`` to its sha256.

    ``pinned``: every file is of the build that edgekit is tested with. Otherwise it is a build of the user's own, whose
    parts were found to fit each other.
    """

    folder: Path
    package: str
    version: str
    files: Mapping[str, str]
    pinned: bool

    def require(self, variants: Iterable[Variant]) -> None:
        """Raise UsageError when a file of one of ``variants`` is not there."""
        for variant in variants:
            if not all(name in self.files for name in variant.files):
                missing = [name for name in variant.files if not (self.folder / name).is_file()]
                raise UsageError(
                    f"The runtime in {self.folder} has no whole variant '{variant.id}': it lacks {', '.join(missing)}.",
                    hint="Add the files, or name a target that does not use this variant.",
                )
