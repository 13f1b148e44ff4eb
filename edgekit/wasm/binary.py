"""Numbers, names and counts of the WebAssembly binary format: read with bounds, and written.

Malformed input raises ``WasmError`` with the offset of the first byte that is wrong; nothing is skipped or guessed.
"""


class WasmError(Exception):
    """Bytes that are not a WebAssembly module. ``offset`` counts from the start of the module."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(f"{message} (at byte {offset})")
        self.offset = offset
        self.message = message


class EditError(Exception):
    """An edit of a sound module that cannot be proven to be safe."""


class Reader:
    """A place in ``data``. ``base`` is added to the offsets in errors."""

    __slots__ = ("at", "base", "data")

    def __init__(self, data: bytes, base: int = 0) -> None:
        self.data = data
        self.at = 0
        self.base = base

    @property
    def offset(self) -> int:
        return self.base + self.at

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.data)

    def byte(self) -> int:
        at = self.at
        if at >= len(self.data):
            raise WasmError(self.offset, "The bytes end too early")
        self.at = at + 1
        return self.data[at]

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise WasmError(self.offset, f"{count} bytes should follow, and {len(self.data) - self.at} do")
        value = self.data[self.at : self.at + count]
        self.at += count
        return value

    def unsigned(self, bits: int = 32) -> int:
        """Read an unsigned LEB128 number of at most ``bits`` bits; it may be padded, as in the standard."""
        at = self.at
        if at < len(self.data) and self.data[at] < 0x80:  # most are of one byte
            self.at = at + 1
            return self.data[at]
        start, value = self.offset, 0
        for shift in range(0, bits, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> bits:
                    raise WasmError(start, f"A number does not fit in {bits} bits")
                return value
        raise WasmError(start, f"A number of {bits} bits is written with too many bytes")

    def signed(self, bits: int) -> int:
        """Read a signed LEB128 number of at most ``bits`` bits."""
        start, value = self.offset, 0
        for shift in range(0, bits, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                value -= (byte & 0x40) << (shift + 1)
                if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
                    raise WasmError(start, f"A number does not fit in {bits} bits")
                return value
        raise WasmError(start, f"A number of {bits} bits is written with too many bytes")

    def count(self, what: str) -> int:
        """Read how many entries follow; refuse more than there are bytes."""
        start, count = self.offset, self.unsigned()
        if count > len(self.data) - self.at:
            raise WasmError(start, f"{count} {what} do not fit in the {len(self.data) - self.at} bytes that follow")
        return count

    def flag(self, known: range, what: str) -> int:
        """Read a byte that must be one of ``known``."""
        start, flag = self.offset, self.byte()
        if flag not in known:
            raise WasmError(start, f"There is no {what} flag {flag:#x}")
        return flag

    def name(self) -> str:
        start = self.offset
        try:
            return self.take(self.unsigned()).decode()
        except UnicodeDecodeError as error:
            raise WasmError(start, "A name is not UTF-8") from error

    def finish(self, what: str) -> None:
        """Refuse bytes that are left over."""
        if not self.at_end:
            raise WasmError(self.offset, f"{what} is longer than its entries")


def unsigned_bytes(value: int) -> bytes:
    """Write an unsigned LEB128 number, as short as it goes."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed_bytes(value: int) -> bytes:
    """Write a signed LEB128 number, as short as it goes."""
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)
    return bytes(out)
