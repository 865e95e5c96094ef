"""CRC-64/NVME, the checksum of `x-ms-content-crc64`, in C: by the extra `crc64`, else by Azure's own package.

Polynomial 0x9A6C9329AC4BC9B5, reflected; initial value and final XOR are all ones. On the wire a checksum is base64 of
its 8 bytes, the least significant one first. Source: recordings of the live service.
"""

from azure.storage.extensions.checksums import crc64 as azure

from lazulite.protocol.message import Window

_BYTES = 8


def crc64_of_azure(data: Window, previous: int = 0) -> int:
    """Return the checksum of data, given that of the data before it."""
    return azure.compute(data if isinstance(data, bytes) else bytes(data), previous)


try:
    from awscrt.checksums import crc64nvme  # type: ignore[import-untyped]  # The package has no types.
except ImportError:
    crc64 = crc64_of_azure
else:

    def crc64(data: Window, previous: int = 0) -> int:
        """Return the checksum of data, given that of the data before it."""
        checksum: int = crc64nvme(data, previous)
        return checksum


def combine_crc64(first: int, second: int, second_bytes: int) -> int:
    """Return the checksum of two data, one behind the other.

    Args:
        first: the checksum of the former.
        second: the checksum of the latter.
        second_bytes: the length of the latter.
    """
    # Both begin with the initial value 0, so the length of the former does not matter.
    return azure.concat(0, 0, first, 0, 0, second, second_bytes)


class SegmentedCrc64:
    """The checksum of each segment of some data, and of all of them. All bytes are taken in once."""

    def __init__(self) -> None:
        self.whole = 0
        """The checksum of all segments that ended."""
        self._segment = self._length = 0

    def begin(self, length: int) -> None:
        """Begin a segment of so many bytes."""
        self._segment, self._length = 0, length

    def update(self, piece: Window) -> None:
        """Take in the next bytes of the segment."""
        self._segment = crc64(piece, self._segment)

    def end(self) -> int:
        """End the segment, and return its checksum."""
        self.whole = combine_crc64(self.whole, self._segment, self._length)
        return self._segment


def crc64_to_bytes(checksum: int) -> bytes:
    """Return a checksum as headers have it in base64."""
    return checksum.to_bytes(_BYTES, "little")
