"""Pop receipts: base64 of 20 bytes, as the service makes them (reference §28.7).

    02 00 00 00  03 00 00 00  changes, 4 bytes  time of visibility in ticks, 8 bytes        (little endian)

Recorded of the service are zeros in place of `changes`. They tell apart two receipts of one message that name the same
time. An update's receipt begins with 03.
"""

import base64
import binascii
import struct
from typing import NamedTuple

from lazulite.queue.model.message import Message

_RECEIPT = struct.Struct("<IIIQ")
_FIRST, _SECOND = 2, 3
_FIRST_OF_UPDATE = 3
_CHARACTERS = 28


class Receipt(NamedTuple):
    """A pop receipt."""

    visible: int
    """In ticks."""
    changes: int


def write_receipt(message: Message, *, updated: bool = False) -> str:
    """Return the pop receipt of a message."""
    first = _FIRST_OF_UPDATE if updated else _FIRST
    return base64.b64encode(_RECEIPT.pack(first, _SECOND, message.changes, message.visible)).decode()


def read_receipt(text: str) -> Receipt:
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
    first, second, changes, visible = _RECEIPT.unpack(decoded)
    if first not in (_FIRST, _FIRST_OF_UPDATE) or second != _SECOND:
        raise ValueError("it begins otherwise")
    return Receipt(visible, changes)
