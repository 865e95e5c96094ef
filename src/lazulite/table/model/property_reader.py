"""Single properties, found in a row's value without decoding the row (its format: row.py).

Properties are searched for from the end, which Python does in a fraction of the time that it takes from the start on
rows that hold much text. (Not for texts that a client chooses, though: the time would be the product of both lengths.)
"""

from collections.abc import Callable

from lazulite.table.model.edm import DATETIME, TYPES, DateTime, Value, format_datetime, type_of_literal
from lazulite.table.model.row import (
    HEAD_BYTES,
    DecodedRow,
    Property,
    decode_row,
    member_prefix,
    split_text,
    ticks_of,
    type_prefix,
)

_LONGEST_TYPE = len('Edm.DateTime"')
SEARCHED_MAX = 8
"""Properties that are looked for in a row one by one; for more of them the row is decoded."""


def finder(name: str) -> Callable[[bytes, bytes, int], int]:
    """Return the search function for a property; system properties are near the start of a row."""
    return bytes.find if name in ("PartitionKey", "RowKey", "Timestamp") else bytes.rfind


def _read_timestamp(value: bytes) -> Property:
    return Property(DATETIME, f'"{format_datetime(ticks_of(value))}"')


def literal_reader(name: str) -> Callable[[bytes], Property | None]:
    """Return a function that finds one property in a row's value without decoding it; None if it is absent."""
    if name == "Timestamp":
        return _read_timestamp
    cut = member_cutter(name, annotated=True)
    annotation = type_prefix(name)[1:].encode()
    to_type, to_literal = len(annotation), len(member_prefix(name, "")) - 1

    def read(value: bytes) -> Property | None:
        member = cut(value)
        if member is None:
            return None
        if member.startswith(annotation):
            type_name, _, member = member[to_type:].partition(b'",')
            return Property(TYPES[type_name.decode("ascii")], member[to_literal:].decode("ascii"))
        literal = member[to_literal:].decode("ascii")
        return Property(type_of_literal(literal), literal)

    return read


def member_cutter(name: str, *, annotated: bool) -> Callable[[bytes], bytes | None]:
    """Return a function that cuts a property's member out of a row's value, as it is stored; None if it is absent.

    Args:
        name: of the property.
        annotated: whether the type annotation that may stand before it is wanted.
    """
    if not name.isidentifier():
        return lambda _: None
    opening, annotation = member_prefix(name, "").encode(), type_prefix(name).encode()
    to_value = len(opening)
    find = finder(name)

    def cut(value: bytes) -> bytes | None:
        at = find(value, opening, HEAD_BYTES)
        if at < 0:
            return None
        start = at + to_value
        if value[start] != 0x22:
            end = value.find(b",", start)
            return value[at + 1 :] if end < 0 else value[at + 1 : end]
        end = _end_of_string(value, start)
        if annotated:
            type_at = value.find(b"Edm.", at - _LONGEST_TYPE, at)
            if type_at >= 0 and value.endswith(annotation, 0, type_at):
                at = type_at - len(annotation)
        return value[at + 1 : end]

    return cut


def split_members(value: bytes, *, annotated: bool) -> dict[bytes, bytes]:
    """Split a row's value; return the result of `member_cutter` for each name, as names are stored.

    Args:
        value: of the row.
        annotated: whether the type annotations are wanted.
    """
    members: dict[bytes, bytes] = {}
    annotation = b""
    for member in split_text(value[HEAD_BYTES:], b',"')[1:]:
        name = member[: member.index(b'"')]
        if b"@" in name:
            annotation = b'"%b,' % member if annotated else b""
        else:
            members[name] = b'%b"%b' % (annotation, member)
            annotation = b""
    return members


def property_reader(name: str) -> Callable[[bytes], Value | None]:
    """Return a function that reads one property out of a row's value: its decoded value, or None if it is absent."""
    if name == "Timestamp":
        return lambda value: DateTime(ticks_of(value))
    find = literal_reader(name)

    def read(value: bytes) -> Value | None:
        found = find(value)
        return None if found is None else found[0].decode(found[1])

    return read


def decoded_row_reader() -> Callable[[str], Callable[[bytes], Value | None]]:
    """Return a `property_reader` for filters of many properties: each row is decoded once."""
    last = b""
    row = DecodedRow("", "", 0, {})

    def reader(name: str) -> Callable[[bytes], Value | None]:
        if name in ("PartitionKey", "RowKey", "Timestamp"):
            return property_reader(name)

        def read(value: bytes) -> Value | None:
            nonlocal last, row
            if value is not last:
                last, row = value, decode_row(value)
            found = row.properties.get(name)
            return None if found is None else found[0].decode(found[1])

        return read

    return reader


def _end_of_string(value: bytes, start: int) -> int:
    """Return the index after the closing quote of the JSON string that opens at `start`."""
    end = value.find(b'"', start + 1)
    if value[end - 1] != 0x5C:
        return end + 1
    end = value.find(b',"', end)
    if end < 0:
        return len(value)
    after = end + 2
    return after if value[after : after + 1] in (b",", b"") else end
