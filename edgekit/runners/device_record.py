"""What ``edgekit-run`` on a device is asked for, and the record that it writes there. A device is untrusted."""

import secrets
import signal
from pathlib import Path

from edgekit.errors import ParityError, UsageError
from edgekit.records import run_record
from edgekit.records.run_record import RunRecord
from edgekit.runners import programs
from edgekit.runners.page import Ask

_MOST_RECORD_BYTES = 1 << 30


def arguments(ask: Ask) -> tuple[list[str], str]:
    """Return what ``edgekit-run`` is asked, and the id that its record must bring back."""
    run = secrets.token_hex(8)
    words = ["parity", "--run", run, "--repeats", str(ask.repeats), "--soak", str(ask.soak)]
    if ask.threads is not None:
        words += ["--threads", str(ask.threads)]
    for case in ask.cases or ():
        words += ["--case", case]
    return words, run


def read_record(folder: Path, run: str, returncode: int, said: str) -> RunRecord:
    """Read what the device wrote. Raises ParityError where that is no record of this run, with its last words."""
    document, tensors = folder / "record.json", folder / "record.safetensors"
    try:
        if document.stat().st_size + tensors.stat().st_size > _MOST_RECORD_BYTES:
            raise ParityError(f"The device's record has more than {_MOST_RECORD_BYTES:,} bytes.")
        record = run_record.from_device(document.read_bytes(), tensors.read_bytes())
    except FileNotFoundError:
        raise ParityError(
            f"The device gave no record: {_ended(returncode)}.{_last_words(said)}", hint=_hint(returncode)
        ) from None
    except (OSError, ValueError, OverflowError, RecursionError, UsageError) as error:
        raise ParityError(f"The device's record cannot be read: {error}") from error
    if record.run != run:
        raise ParityError("The device brought back the record of another run.")
    return record


def _ended(code: int) -> str:
    # A shell says 128 + N of a program that a signal ended.
    number = -code if code < 0 else code - 128 if code > 128 else 0
    try:
        return f"its runner was ended by {signal.Signals(number).name}" if number else f"its runner ended with {code}"
    except ValueError:
        return f"its runner ended with {code}"


def _hint(code: int) -> str | None:
    if code in (-signal.SIGILL, 128 + signal.SIGILL):
        return (
            "The processor lacks an instruction that a wheel uses. Is the bundle's target that device? If it is, "
            "please report it: such wheels are kept in a table and left out."
        )
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return "Perhaps its memory did not suffice."
    return None


def _last_words(said: str) -> str:
    # What onnxruntime says of a machine whose processor QEMU plays is no news.
    telling = [line for line in said.splitlines() if "cpuinfo" not in line and "cpuid_info" not in line]
    return programs.last_words("\n".join(telling))
