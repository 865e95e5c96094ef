"""Pop receipts: base64 of 20 bytes, as the service makes them (reference §28.7).

    02 00 00 00  03 00 00 00  mark, 4 bytes  time of visibility in ticks, 8 bytes        (little endian)

Recorded of the service are zeros in place of the mark. The mark is the number of changes of the message, plus the
CRC-32 of its id. It tells apart two receipts that name the same time: of one message, and of messages that one request
got. An update's receipt begins with 03.
"""

import base64
import binascii
import struct
import zlib
from typing import NamedTuple
from uuid import UUID

from lazulite.queue.model.message import Message

_RECEIPT = struct.Struct("<IIIQ")
_FIRST, _SECOND = 2, 3
_FIRST_OF_UPDATE = 3
_CHARACTERS = 28
_MARK_MAX = 2**32 - 1


class SentReceipt(NamedTuple):
    """A pop receipt as a client sent it, for whatever message."""

    visible: int
    """In ticks."""
    mark: int

    def of(self, message: UUID) -> "Receipt":
        """Return what it says of a message; the number of changes makes no sense if it is another one's."""
        return Receipt(self.visible, (self.mark - zlib.crc32(message.bytes)) & _MARK_MAX)


class Receipt(NamedTuple):
    """A pop receipt of one message."""

    visible: int
    """In ticks."""
    changes: int


def write_receipt(message: Message, *, updated: bool = False) -> str:
    """Return the pop receipt of a message."""
    first = _FIRST_OF_UPDATE if updated else _FIRST
    mark = (message.changes + zlib.crc32(message.id.bytes)) & _MARK_MAX
    return base64.b64encode(_RECEIPT.pack(first, _SECOND, mark, message.visible)).decode()


def read_receipt(text: str) -> SentReceipt:
    """Read a pop receipt.

    Args:
        text: decoded from the query; a blank stands for a `+` that the client did not encode.

    Raises:
        ValueError: it has another form.
    """
    if len(text) != _CHARACTERS:
        raise ValueError("the length differs")
    try:
        decoded = base64.b64decode(text.replace(" ", "+"), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is not base64") from None
    if len(decoded) != _RECEIPT.size:
        raise ValueError("the length differs")
    first, second, mark, visible = _RECEIPT.unpack(decoded)
    if first not in (_FIRST, _FIRST_OF_UPDATE) or second != _SECOND:
        raise ValueError("it begins otherwise")
    return SentReceipt(visible, mark)
