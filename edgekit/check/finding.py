"""What a check finds."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]

# From worst to least.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or worth knowing.

    ``rule``: its id, and the name of its page in ``docs/rules``. ``error``: the target cannot run the model;
    ``warning``: it may be wrong, slow or refused somewhere; ``note``: worth knowing. ``node`` and ``tensor`` name what
    it is about, as the model does; a node without a name is named after its first output. ``fix``: what to do.
    """

    rule: str
    severity: Severity
    message: str
    node: str | None = None
    tensor: str | None = None
    fix: str | None = None
