r"""How an entity is stored: the bytes of one row of the engine.

A row's value is what a client that asks for minimal metadata wants to read, so that a page of a query is a range scan
and a join. It has two parts:

    head      9 bytes: the format version, 0x01, then the entity's Timestamp in ticks (100 ns since 1601-01-01 UTC),
              8 bytes, big endian
    members   ASCII text: the members of the entity's JSON object in minimal metadata, without the braces:

        "odata.etag":"W/\"datetime'2026-11-20T10%3A00%3A00.1234567Z'\"","PartitionKey":"p","RowKey":"r",
        "Timestamp":"2026-11-20T10:00:00.1234567Z","Age":23,"Id@odata.type":"Edm.Int64","Id":"5"

    (in one line). The four system members always come first and in this order, then the custom properties: as sent
    when the entity was inserted, by name once it was replaced or merged. There is no white space outside strings. Each
    value is the canonical literal of its type (edm.py); a type annotation stands immediately before its member, and
    only where `edm.needs_annotation` says so. Every character that is not ASCII is escaped as \uXXXX.

Invariants that reading relies on: inside a string a quote is always escaped, and every member but the first follows a
comma; therefore `,"` opens a member or ends a string, and the bytes `,"Name":` occur exactly once if the entity has the
property Name, and never otherwise. The ETag is the Timestamp in another spelling, and both are the head's ticks. A null
is never stored.

Properties are searched for from the end, which Python does in a fraction of the time that it takes from the start on
rows that hold much text. (Not for texts that a client chooses, though: the time would be the product of both lengths.)
"""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quote
from typing import NamedTuple, TypeVar

from lazulite.engine.ordinal import ordinal
from lazulite.table.model.edm import (
    DATETIME,
    TYPES,
    DateTime,
    EdmType,
    Value,
    format_datetime,
    needs_annotation,
    type_of_literal,
)

HEAD_BYTES = 9
_VERSION = b"\x01"
_ETAG_AT = HEAD_BYTES + len('"odata.etag":"')
_AFTER_ETAG = b'","PartitionKey":'
_LONGEST_TYPE = len('Edm.DateTime"')
SEARCHED_MAX = 8
"""Properties that are looked for in a row one by one; for more of them the row is taken apart."""


class Property(NamedTuple):
    """A typed value in its canonical literal."""

    edm: EdmType
    literal: str


class Row(NamedTuple):
    """A stored entity, taken apart. Keys and names are decoded; values are literals."""

    partition_key: str
    row_key: str
    ticks: int
    properties: dict[str, Property]


@lru_cache(maxsize=64)
def etag_of(ticks: int) -> str:
    """Return the ETag of an entity whose Timestamp is `ticks`."""
    return f"W/\"datetime'{format_datetime(ticks).replace(':', '%3A')}'\""


def stored_etag(value: bytes) -> str:
    """Return the ETag of a row's value: what `etag_of` makes of its Timestamp, read instead of spelled anew."""
    assert value[:1] == _VERSION, "a row of a format that this version does not know"
    return value[_ETAG_AT : value.index(_AFTER_ETAG)].decode("ascii").replace("\\", "")


def encode_keys(partition_key: str, row_key: str) -> str:
    """Return the members of the two keys."""
    return f'"PartitionKey":{quote(partition_key)},"RowKey":{quote(row_key)}'


_T = TypeVar("_T")
_Text = TypeVar("_Text", str, bytes)


def in_order(properties: Mapping[str, _T]) -> dict[str, _T]:
    """Return properties by name, as the service lists those of an entity that was updated (reference §5.2)."""
    names = sorted(properties)
    if not "".join(names).isascii():
        names.sort(key=ordinal)
    return {name: properties[name] for name in names}


def type_prefix(name: str) -> str:
    """Return what precedes the name of a property's type where that is told."""
    return f',{quote(name)[:-1]}@odata.type":"'


@lru_cache(maxsize=4096)
def member_prefix(name: str, type_name: str) -> str:
    """Return what precedes a property's literal: a comma, the name, and before it the annotation if there is a type."""
    annotation = f'{type_prefix(name)}{type_name}"' if type_name else ""
    return f"{annotation},{quote(name)}:"


def encode_properties(properties: Mapping[str, Property]) -> str:
    """Return the members of custom properties, each after a comma."""
    return "".join(
        [
            member_prefix(name, edm.name if needs_annotation(edm, literal) else "") + literal
            for name, (edm, literal) in properties.items()
        ]
    )


def assemble(ticks: int, keys: str, properties: str) -> bytes:
    """Build a row's value from what `encode_keys` and `encode_properties` returned."""
    opening, timestamp = _system_parts(ticks)
    return opening + f"{keys}{timestamp}{properties}".encode("ascii")


@lru_cache(maxsize=64)
def _system_parts(ticks: int) -> tuple[bytes, str]:
    """Return what stands before the keys and after them; all rows of a commit have the same."""
    etag = f'"odata.etag":{quote(etag_of(ticks))},'
    return _VERSION + ticks.to_bytes(8, "big") + etag.encode("ascii"), f',"Timestamp":"{format_datetime(ticks)}"'


def ticks_of(value: bytes) -> int:
    """Return the Timestamp of a row's value."""
    assert value[:1] == _VERSION, "a row of a format that this version does not know"
    return int.from_bytes(value[1:HEAD_BYTES], "big")


def members_of(value: bytes) -> bytes:
    """Return the members of a row's value, ready to be put between braces."""
    return value[HEAD_BYTES:]


def _unquote(literal: str) -> str:
    if "\\" not in literal:
        return literal[1:-1]
    text = json.loads(literal)
    assert isinstance(text, str)
    return text


def decode_row(value: bytes) -> Row:
    """Take a row's value apart."""
    ticks = ticks_of(value)
    members = _split(str(memoryview(value)[HEAD_BYTES:], "ascii"), ',"')
    properties: dict[str, Property] = {}
    edm: EdmType | None = None
    for member in members[4:]:
        name, _, literal = member.partition('":')
        if "@" in name:
            edm = TYPES[literal[1:-1]]
            continue
        if "\\" in name:
            name = _unquote(f'"{name}"')
        properties[name] = Property(edm or type_of_literal(literal), literal)
        edm = None
    partition_key, row_key = (_unquote(member.partition('":')[2]) for member in members[1:3])
    return Row(partition_key, row_key, ticks, properties)


def _split(text: _Text, opening: _Text) -> list[_Text]:
    """Return the members, annotations among them, each without the comma and the quote that open it."""
    members = text.split(opening)
    if not all(members):
        # What seemed to open a member there is the end of the string before, whose last character is a comma.
        for index in [index for index, member in enumerate(members) if not member]:
            members[index - 1] += opening
        members = list(filter(None, members))
    return members


def finder(name: str) -> Callable[[bytes, bytes, int], int]:
    """Return the function to search a row with for what belongs to a property; the system's are near the start."""
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
    """Take a row's value apart; return what `member_cutter` cuts out for each name, as names are stored.

    Args:
        value: of the row.
        annotated: whether the type annotations are wanted.
    """
    members: dict[bytes, bytes] = {}
    annotation = b""
    for member in _split(value[HEAD_BYTES:], b',"')[1:]:
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
    """Return what `property_reader` is, for a filter that asks about many properties: each row is taken apart once."""
    last = b""
    row = Row("", "", 0, {})

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
