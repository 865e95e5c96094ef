r"""The row format: an entity as the bytes of one row of the engine.

A row's value holds the members of the response in minimal metadata, so a page of a query is a range scan and a join. It
has two parts:

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
property Name, and never otherwise. The ETag and the Timestamp are two texts of the head's ticks. A null
is never stored.

History of the format, by its number (the first byte). Golden bytes: `tests/table/model/test_row_formats.py`.

    1   since 2026-11-20, the first version: custom properties as sent. Since 2026-11-21, by name in entities that were
        replaced or merged. No version depends on their order: all read both forms. No other byte has changed.

No other format was ever written. A new one gets the next number; `decode_row` and the readers in property_reader.py
continue to read all earlier ones.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quote
from typing import NamedTuple, TypeVar

from lazulite.engine.ordinal import ordinal
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.table.model.edm import TYPES, EdmType, format_datetime, needs_annotation, type_of_literal

HEAD_BYTES = 9
_VERSION = b"\x01"
_ETAG_AT = HEAD_BYTES + len('"odata.etag":"')
_AFTER_ETAG = b'","PartitionKey":'
_OPENING = ',"'
_SYSTEM_MEMBERS = 4
LARGE_BYTES = 64 * 1024
"""Bytes of a row that is taken apart, and serialized where that is costly, in steps."""


class Property(NamedTuple):
    """A typed value in its canonical literal."""

    edm: EdmType
    literal: str


class DecodedRow(NamedTuple):
    """A decoded row. Keys and names are decoded; values are literals."""

    partition_key: str
    row_key: str
    ticks: int
    properties: dict[str, Property]


@lru_cache(maxsize=64)
def etag_of(ticks: int) -> str:
    """Return the ETag of an entity whose Timestamp is `ticks`."""
    return f"W/\"datetime'{format_datetime(ticks).replace(':', '%3A')}'\""


def stored_etag(value: bytes) -> str:
    """Return the ETag of a row's value: as `etag_of` for its Timestamp, but read instead of formatted."""
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
    """Return the text before the name of a property's type in an annotation."""
    return f',{quote(name)[:-1]}@odata.type":"'


@lru_cache(maxsize=4096)
def member_prefix(name: str, type_name: str) -> str:
    """Return the text before a property's literal: a comma, the annotation if there is a type, the name."""
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


class _TextCache:
    """Builds the members of a Timestamp, and keeps the newest: all rows of a commit have the same."""

    __slots__ = ("_newest",)

    def __init__(self) -> None:
        self._newest = (-1, b"", b"")
        """In one tuple, so that another thread never sees a part of it."""

    def at(self, ticks: int) -> tuple[int, bytes, bytes]:
        """Return the ticks, the bytes before the keys and those after them."""
        found = self._newest
        if found[0] != ticks:
            seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
            etag, timestamp = _openings(seconds)
            end = b".%07d" % fraction
            if not fraction % 10:
                end = end.rstrip(b"0") if fraction else b""
            before = b"".join((_VERSION, ticks.to_bytes(8, "big"), etag, end, b'Z\'\\"",'))
            found = self._newest = ticks, before, b"".join((timestamp, end, b'Z"'))
        return found


@lru_cache(maxsize=64)
def _openings(seconds: int) -> tuple[bytes, bytes]:
    """Return the members of the ETag and of the Timestamp up to the fraction of a second, as `etag_of` has them."""
    text = format_datetime(seconds * TICKS_PER_SECOND)[:-1]
    etag = f'"odata.etag":"W/\\"datetime\'{text.replace(":", "%3A")}'
    return etag.encode("ascii"), f',"Timestamp":"{text}'.encode("ascii")


_system_members_at = _TextCache().at


def assemble(ticks: int, keys: str, properties: str | bytes) -> bytes:
    """Build a row's value from the results of `encode_keys` and `encode_properties`, which may be in ASCII already."""
    _, opening, timestamp = _system_members_at(ticks)
    if isinstance(properties, str):
        properties = properties.encode("ascii")
    return b"".join((opening, keys.encode("ascii"), timestamp, properties))


def complete(ticks: int, parts: Sequence[bytes]) -> bytes:
    """Build a row's value as `assemble` does, from its two texts in ASCII."""
    _, opening, timestamp = _system_members_at(ticks)
    keys, properties = parts
    return b"".join((opening, keys, timestamp, properties))


def ticks_of(value: bytes) -> int:
    """Return the Timestamp of a row's value."""
    assert value[:1] == _VERSION, "a row of a format that this version does not know"
    return int.from_bytes(value[1:HEAD_BYTES], "big")


def example_at(ticks: int) -> bytes:
    """Return a row's value with a Timestamp and no members."""
    return _VERSION + ticks.to_bytes(HEAD_BYTES - 1, "big")


def members_of(value: bytes) -> bytes:
    """Return the members of a row's value, without braces."""
    return value[HEAD_BYTES:]


def _unquote(literal: str) -> str:
    if "\\" not in literal:
        return literal[1:-1]
    text = json.loads(literal)
    assert isinstance(text, str)
    return text


def decode_row(value: bytes) -> DecodedRow:
    """Decode a row's value."""
    ticks = ticks_of(value)
    members = _split(value)
    partition_key, row_key = (_unquote(member.partition('":')[2]) for member in members[1 : _SYSTEM_MEMBERS - 1])
    return DecodedRow(partition_key, row_key, ticks, _decode(members[_SYSTEM_MEMBERS:]))


def decode_members(members: str) -> dict[str, Property]:
    """Decode what `encode_properties` returned."""
    return _decode(split_custom(members))


def custom_members(value: bytes) -> list[str]:
    """Return the custom members of a row's value as `split_text` does."""
    return _split(value)[_SYSTEM_MEMBERS:]


def split_custom(members: str) -> list[str]:
    """Return custom members, each after a comma, as `split_text` does."""
    return split_text(members[len(_OPENING) :], _OPENING) if members else []


def _split(value: bytes) -> list[str]:
    return split_text(str(memoryview(value)[HEAD_BYTES:], "ascii"), _OPENING)


def _decode(members: Iterable[str]) -> dict[str, Property]:
    properties: dict[str, Property] = {}
    edm: EdmType | None = None
    for member in members:
        name, _, literal = member.partition('":')
        if "@" in name:
            edm = TYPES[literal[1:-1]]
            continue
        if "\\" in name:
            name = _unquote(f'"{name}"')
        properties[name] = Property(edm or type_of_literal(literal), literal)
        edm = None
    return properties


def split_text(text: _Text, opening: _Text) -> list[_Text]:
    """Return the members, annotations among them, each without the comma and the quote that open it."""
    members = text.split(opening)
    if not all(members):
        # What seemed to open a member there is the end of the string before, whose last character is a comma.
        for index in [index for index, member in enumerate(members) if not member]:
            members[index - 1] += opening
        members = list(filter(None, members))
    return members
