"""CRC-64/NVME, the checksum of `x-ms-content-crc64`: in C by the extra `crc64`, else in Python.

Polynomial 0x9A6C9329AC4BC9B5, reflected; initial value and final XOR are all ones. On the wire a checksum is base64 of
its 8 bytes, the least significant one first. Source: recordings of the live service.

A reflected polynomial is an integer whose least significant bit is the highest power. So the first bytes of some data
are the highest powers, and the first byte is the low one of the integer. `_fold` replaces long data by short data with
the same remainder: the first part F of `F * x^n + S` is multiplied by `x^n mod P`. Python's own integers do that for
megabytes at a time.
"""

from functools import lru_cache

from lazulite.protocol.message import Window

_POLYNOMIAL = 0x9A6C9329AC4BC9B5
_ONES = 2**64 - 1
_ONE = 1 << 63
"""The polynomial 1."""
_BYTES = 8
_FOLDED_BITS = 2048
"""Shorter data is not worth folding."""
_COMBINED_BYTES = 1024 * 1024
"""The checksums of shorter data are not worth combining, which takes up to half a millisecond."""


def _table() -> list[int]:
    return [_shifted(byte, 8) for byte in range(256)]


def _shifted(value: int, bits: int) -> int:
    """Return a polynomial without its highest powers, so many, which are replaced by their remainder."""
    for _ in range(bits):
        value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return value


_TABLE = _table()


def crc64_in_python(data: Window, previous: int = 0) -> int:
    """Return the checksum of data, given that of the data before it."""
    state = previous ^ _ONES
    if len(data) * 8 > _FOLDED_BITS:
        data, state = _fold(int.from_bytes(data, "little") ^ state, len(data) * 8), 0
    for byte in data:
        state = _TABLE[(state ^ byte) & 0xFF] ^ state >> 8
    return state ^ _ONES


def _fold(value: int, bits: int) -> bytes:
    """Return short data with the remainder of long data, given as a reflected polynomial of so many bits."""
    while bits > _FOLDED_BITS:
        power = (bits - 1).bit_length() - 1
        kept = 1 << power
        folded = bits - kept
        first, value = value & (1 << folded) - 1, value >> folded
        product = _multiply(first, _power_of_two(power))
        bits = max(kept, folded + 64)
        value = value << bits - kept ^ product << bits - folded - 64
    return value.to_bytes(bits // 8, "little")


def _multiply(value: int, factor: int) -> int:
    """Return the product of a polynomial with one of 64 bits, in 64 bits more."""
    product = 0
    while factor:
        lowest = factor & -factor
        product ^= value << lowest.bit_length()
        factor ^= lowest
    return product


def _reduced_product(value: int, factor: int) -> int:
    """Return the product of two polynomials of 64 bits, modulo the polynomial."""
    return _shifted(_multiply(value, factor), 64)


@lru_cache(maxsize=64)
def _power_of_two(exponent: int) -> int:
    """Return `x^(2^exponent)`, reduced."""
    if exponent == 0:
        return _ONE >> 1
    root = _power_of_two(exponent - 1)
    return _reduced_product(root, root)


def combine_crc64(first: int, second: int, second_bytes: int) -> int:
    """Return the checksum of two data, one behind the other.

    Args:
        first: the checksum of the former.
        second: the checksum of the latter.
        second_bytes: the length of the latter.
    """
    exponent, bits = 0, second_bytes * 8
    while bits:
        if bits & 1:
            first = _reduced_product(first, _power_of_two(exponent))
        exponent += 1
        bits >>= 1
    return first ^ second


try:
    from awscrt.checksums import crc64nvme  # type: ignore[import-untyped]  # The package has no types.
except ImportError:
    crc64 = crc64_in_python
else:

    def crc64(data: Window, previous: int = 0) -> int:
        """Return the checksum of data, given that of the data before it."""
        checksum: int = crc64nvme(data, previous)
        return checksum


class SegmentedCrc64:
    """The checksum of each segment of some data, and of all of them. The bytes of a long segment are taken in once."""

    def __init__(self) -> None:
        self.whole = 0
        """The checksum of all segments that ended."""
        self._segment = self._running = 0
        self._length = 0
        self._combines = False

    def begin(self, length: int) -> None:
        """Begin a segment of so many bytes."""
        self._segment, self._running, self._length = 0, self.whole, length
        self._combines = length >= _COMBINED_BYTES

    def update(self, piece: Window) -> None:
        """Take in the next bytes of the segment."""
        self._segment = crc64(piece, self._segment)
        if not self._combines:
            self._running = crc64(piece, self._running)

    def end(self) -> int:
        """End the segment, and return its checksum."""
        self.whole = combine_crc64(self.whole, self._segment, self._length) if self._combines else self._running
        return self._segment


def crc64_to_bytes(checksum: int) -> bytes:
    """Return a checksum as headers have it in base64."""
    return checksum.to_bytes(_BYTES, "little")
