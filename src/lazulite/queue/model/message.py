"""A message, its two rows in a shard, and its pop receipts.

    v{time of visibility}{id}   message: insertion and expiration time, dequeue count, changes, text
    e{expiration time}{id}      index: time of visibility; absent for a message that never expires

Times are ticks in 16 hexadecimal digits, so that rows are in the order of time. The first byte of a value tells its
kind. Invariant: the time of visibility and the number of changes together occur once in the life of a message, so that
they are its pop receipt. A receipt is base64 of 20 bytes, as the service makes them (reference §28.7):

    02 00 00 00  03 00 00 00  mark, 4 bytes  time of visibility in ticks, 8 bytes        (little endian)

Recorded of the service are zeros in place of the mark. The mark is the number of changes of the message, plus the
CRC-32 of its id. It tells apart two receipts that name the same time: of one message, and of messages that one request
got. An update's receipt begins with 03.
"""

import binascii
import re
import struct
import zlib
from typing import NamedTuple, TypeAlias
from uuid import UUID

from lazulite.protocol.clock import LAST_TICK

MessageId: TypeAlias = str
"""The id of a message: a GUID as 32 hexadecimal digits in lower case."""

VISIBLE, EXPIRES = "v", "e"
"""The first characters of the two rows."""
_HEAD = struct.Struct(">cQQII")
_EXPIRES = struct.Struct(">Q")
_EXPIRES_AT = 9
_KIND = b"m"
_INDEX = struct.Struct(">cQ")
_INDEX_KIND = b"e"
_ID_AT = 17
_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_KEY = re.compile(rf"[{VISIBLE}{EXPIRES}][0-9a-f]{{48}}")
COUNT_MAX = 2**31 - 1
"""The greatest dequeue count, where counting stops: the number that clients read it as."""

_RECEIPT = struct.Struct("<IIIQ")
_FIRST, _SECOND = 2, 3
_FIRST_OF_UPDATE = 3
_CHARACTERS = 28
_MARK_MAX = 2**32 - 1


class MessagePosition(NamedTuple):
    """Where a stored message is, and in which state: what a commit needs to move or remove it."""

    row: str
    """The key of its row."""
    head: bytes
    """The value of its row begins with it."""
    index_row: str | None
    """The key of its index row; None if it never expires."""


class Message(NamedTuple):
    """One message. Times are in ticks."""

    id: MessageId
    inserted: int
    expires: int
    """`LAST_TICK`: never."""
    visible: int
    """The time of its next visibility."""
    text: bytes
    """UTF-8."""
    dequeues: int = 0
    changes: int = 0
    """How often its time of visibility was changed."""

    @property
    def row(self) -> str:
        """The key of its row."""
        return row_of(self.visible, self.id)

    @property
    def head(self) -> bytes:
        """The beginning of the value of its row: all but the text."""
        return _HEAD.pack(_KIND, self.inserted, self.expires, self.dequeues, self.changes)

    @property
    def value(self) -> bytes:
        """The value of its row."""
        return self.head + self.text

    @property
    def index_row(self) -> str | None:
        """The key of its index row; None if it never expires."""
        return None if self.expires >= LAST_TICK else f"{EXPIRES}{self.expires:016x}{self.id}"

    @property
    def index_value(self) -> bytes:
        """The value of its index row."""
        return _INDEX.pack(_INDEX_KIND, self.visible)

    @property
    def place(self) -> MessagePosition:
        """Where it is."""
        identity, inserted, expires, visible, _, dequeues, changes = self
        head = _HEAD.pack(_KIND, inserted, expires, dequeues, changes)
        row = f"{VISIBLE}{_hex_of(visible)}{identity}"
        return MessagePosition(row, head, None if expires >= LAST_TICK else f"{EXPIRES}{_hex_of(expires)}{identity}")

    @property
    def order(self) -> tuple[int, int, MessageId]:
        """The place among the messages of a queue: by the time of visibility, then by that of insertion."""
        return self.visible, self.inserted, self.id

    def moved(self, visible: int, text: bytes | None = None, *, dequeued: int = 0) -> "Message":
        """Return the message after an update or a get.

        Args:
            visible: its next time of visibility.
            text: its new text; None keeps the old one.
            dequeued: 1 after a get.
        """
        identity, inserted, expires, _, old, dequeues, changes = self
        dequeues = min(dequeues + dequeued, COUNT_MAX)
        return Message(
            identity, inserted, expires, visible, old if text is None else text, dequeues, changes + 1 & 0xFFFFFFFF
        )

    def claimed(self, visible: int) -> "Message":
        """Return the message after a get."""
        return self.moved(visible, dequeued=1)


def id_of(number: int) -> MessageId:
    """Return the id that has a value of 128 bits."""
    return number.to_bytes(16, "big").hex()


def _hex_of(ticks: int) -> str:
    """Return a time as a row's key has it, in half the time of a format."""
    return ticks.to_bytes(8, "big").hex()


def read_id(text: str) -> MessageId:
    """Read an id as clients send it: a GUID in any of its spellings.

    Raises:
        ValueError: it is malformed.
    """
    if _GUID.fullmatch(text) is None:
        return UUID(text).hex
    return text.replace("-", "").lower()


def write_id(message: MessageId) -> str:
    """Return an id as clients see it."""
    return f"{message[:8]}-{message[8:12]}-{message[12:16]}-{message[16:20]}-{message[20:]}"


def partition_of(shard: int) -> str:
    """Return the partition of a shard, given its number."""
    return f"{shard:02x}"


def row_at(visible: int) -> str:
    """Return the bound below all rows of messages that become visible at a time or later."""
    return f"{VISIBLE}{visible:016x}"


def visible_at(row: str) -> int:
    """Return the time of visibility in the key of a message's row."""
    return int(row[1:_ID_AT], 16)


def index_row_at(expires: int) -> str:
    """Return the bound below all index rows of messages that expire at a time or later."""
    return f"{EXPIRES}{expires:016x}"


def row_of(visible: int, message: MessageId) -> str:
    """Return the key of a message's row."""
    return f"{VISIBLE}{visible:016x}{message}"


def row_of_index(row: str, value: bytes) -> str:
    """Return the key of a message's row, given its index row.

    Raises:
        ValueError: the value is not an index row.
    """
    return f"{VISIBLE}{_visible(value):016x}{row[_ID_AT:]}"


def expires_at(value: bytes) -> int:
    """Return the time of expiration of a message's row, given its value."""
    expires: int = _EXPIRES.unpack_from(value, _EXPIRES_AT)[0]
    return expires


def read_message(row: str, value: bytes) -> Message:
    """Read a row.

    Raises:
        ValueError: it is not a message.
    """
    visible, message = _read_key(row, VISIBLE)
    try:
        kind, inserted, expires, dequeues, changes = _HEAD.unpack_from(value)
    except struct.error:
        raise ValueError("a message is too short") from None
    if kind != _KIND:
        raise ValueError("the value is not a message")
    return Message(message, inserted, expires, visible, value[_HEAD.size :], dequeues, changes)


def read_index(row: str, value: bytes) -> tuple[int, MessageId, int]:
    """Read an index row: return the time of expiration, the message's id, and the time of visibility.

    Raises:
        ValueError: it is malformed.
    """
    expires, message = _read_key(row, EXPIRES)
    return expires, message, _visible(value)


def _visible(value: bytes) -> int:
    try:
        kind, visible = _INDEX.unpack(value)
    except struct.error:
        raise ValueError("an index row has another length") from None
    if kind != _INDEX_KIND:
        raise ValueError("the value is not an index row")
    return int(visible)


def _read_key(row: str, prefix: str) -> tuple[int, MessageId]:
    if row[:1] != prefix or _KEY.fullmatch(row) is None:
        raise ValueError("the key is not a message")
    return int(row[1:_ID_AT], 16), row[_ID_AT:]


class SentReceipt(NamedTuple):
    """A pop receipt as a client sent it, for whatever message."""

    visible: int
    """In ticks."""
    mark: int

    def of(self, message: MessageId) -> "Receipt":
        """Return what it says of a message; the number of changes makes no sense if it is another one's."""
        return Receipt(self.visible, (self.mark - zlib.crc32(bytes.fromhex(message))) & _MARK_MAX)


class Receipt(NamedTuple):
    """A pop receipt of one message."""

    visible: int
    """In ticks."""
    changes: int


def write_receipt(message: Message, *, updated: bool = False) -> str:
    """Return the pop receipt of a message."""
    first = _FIRST_OF_UPDATE if updated else _FIRST
    mark = (message.changes + zlib.crc32(bytes.fromhex(message.id))) & _MARK_MAX
    return binascii.b2a_base64(_RECEIPT.pack(first, _SECOND, mark, message.visible), newline=False).decode()


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
        decoded = binascii.a2b_base64(text.replace(" ", "+"), strict_mode=True)
    except ValueError:
        raise ValueError("it is not base64") from None
    if len(decoded) != _RECEIPT.size:
        raise ValueError("the length differs")
    first, second, mark, visible = _RECEIPT.unpack(decoded)
    if first not in (_FIRST, _FIRST_OF_UPDATE) or second != _SECOND:
        raise ValueError("it begins otherwise")
    return SentReceipt(visible, mark)
