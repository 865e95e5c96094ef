"""JSON payloads out, at the three metadata levels. Source: reference §6, byte for byte.

Invariants: member order is the service's; every byte is ASCII. A `JsonEntityWriter` spells the members of a stored row
(row.py) without decoding values: minimal metadata is what is stored, the other levels cut and insert.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from json.encoder import encode_basestring_ascii as quote

from lazulite.protocol.errors import ServiceError
from lazulite.table.edm import needs_annotation
from lazulite.table.payload.links import entity_link, table_link
from lazulite.table.row import HEAD_BYTES, Property, literal_reader, members_of

_ANNOTATION = re.compile(rb',"[^"@]+@odata\.type":"Edm\.\w+"(?=,")')
_PARTITION_KEY = b',"PartitionKey":'
_TIMESTAMP = b',"Timestamp":'
_TYPED_TIMESTAMP = b',"Timestamp@odata.type":"Edm.DateTime","Timestamp":'


class MetadataLevel(StrEnum):
    """How much OData metadata a payload carries; the value is its spelling in a media type."""

    NONE = "nometadata"
    MINIMAL = "minimalmetadata"
    FULL = "fullmetadata"


class JsonEntityWriter:
    """Spells entities of one table for one request.

    Args:
        level: the metadata level.
        base: absolute URL of the account, with trailing slash.
        account: the account's name.
        table: the table's name as the request wrote it.
        select: names selected, in order; None for all.
        select_text: the raw `$select` text, echoed in `odata.metadata`.
    """

    def __init__(
        self,
        level: MetadataLevel,
        base: str,
        account: str,
        table: str,
        select: Sequence[str] | None = None,
        select_text: str = "",
    ) -> None:
        self._level = level
        self._base = base
        self._head = f'"odata.type":{quote(f"{account}.{table}")},"odata.id":{quote(base)[:-1]}'
        """What full metadata of every entity begins with, up to where its own address begins."""
        self._table = table
        self._suffix = "" if select is None else "&$select=" + select_text.replace(" ", "%20")
        self.item: Callable[[bytes], bytes] = self._members_writer(level, select)
        """Takes a row's value to the members of its JSON object."""

    def _members_writer(self, level: MetadataLevel, select: Sequence[str] | None) -> Callable[[bytes], bytes]:
        if select is not None:
            return self._selected(level, select)
        if level is MetadataLevel.FULL:
            return self._with_full_metadata
        return members_of if level is MetadataLevel.MINIMAL else _without_metadata

    def _metadata(self, element: str) -> str:
        if self._level is MetadataLevel.NONE:
            return ""
        return f'"odata.metadata":{quote(f"{self._base}$metadata#{self._table}{element}{self._suffix}")},'

    def entity(self, value: bytes) -> bytes:
        """Return the payload that one entity is."""
        return b"{%s%s}" % (self._metadata("/@Element").encode("ascii"), self.item(value))

    def feed(self, items: Iterable[bytes]) -> bytes:
        """Return the payload of a page, from what `item` gave for each entity."""
        joined = b"},{".join(items)
        head = f'{{{self._metadata("")}"value":['.encode("ascii")
        return b"".join((head, b"{", joined, b"}]}")) if joined else head + b"]}"

    def _with_full_metadata(self, value: bytes) -> bytes:
        rest = value[value.index(_PARTITION_KEY) :].replace(_TIMESTAMP, _TYPED_TIMESTAMP, 1)
        return self._full_head(value).encode("ascii") + rest

    def _full_head(self, value: bytes) -> str:
        link = entity_link(self._table, _read_key(_partition_key_of(value)), _read_key(_row_key_of(value)))
        quoted = quote(link)[1:]
        return f'{self._head}{quoted},{_etag_of(value)},"odata.editLink":"{quoted}'

    def _selected(self, level: MetadataLevel, names: Sequence[str]) -> Callable[[bytes], bytes]:
        columns = [(quote(name), literal_reader(name)) for name in dict.fromkeys(names)]
        annotate = level is not MetadataLevel.NONE
        full = level is MetadataLevel.FULL

        def members(value: bytes) -> bytes:
            parts = []
            if full:
                parts.append(self._full_head(value))
            elif annotate:
                parts.append(_etag_of(value))
            for name, read in columns:
                found = read(value)
                if found is None:
                    parts.append(f"{name}:null")
                    continue
                edm, literal = found
                if annotate and (needs_annotation(edm, literal) if name != '"Timestamp"' else full):
                    parts.append(f'{name[:-1]}@odata.type":"{edm.name}"')
                parts.append(f"{name}:{literal}")
            return ",".join(parts).encode("ascii")

        return members


_partition_key_of = literal_reader("PartitionKey")
_row_key_of = literal_reader("RowKey")


def _etag_of(value: bytes) -> str:
    """Return the first of the stored members, which is the ETag."""
    return value[HEAD_BYTES : value.index(_PARTITION_KEY)].decode("ascii")


def _read_key(found: Property | None) -> str:
    assert found is not None, "a row without its keys"
    text = found.edm.decode(found.literal)
    assert isinstance(text, str)
    return text


def _without_metadata(value: bytes) -> bytes:
    return _ANNOTATION.sub(b"", value[value.index(_PARTITION_KEY) + 1 :])


class JsonTableWriter:
    """Spells tables for one request; arguments as `JsonEntityWriter`'s."""

    def __init__(self, level: MetadataLevel, base: str, account: str) -> None:
        self._level = level
        self._base = base
        self._account = account

    def _metadata(self, fragment: str) -> str:
        if self._level is MetadataLevel.NONE:
            return ""
        return f'"odata.metadata":{quote(f"{self._base}$metadata#{fragment}")},'

    def _members(self, name: str) -> str:
        head = ""
        if self._level is MetadataLevel.FULL:
            link = table_link(name)
            head = (
                f'"odata.type":{quote(f"{self._account}.Tables")},"odata.id":{quote(self._base + link)},'
                f'"odata.editLink":{quote(link)},'
            )
        return f'{head}"TableName":{quote(name)}'

    def table(self, name: str) -> bytes:
        """Return the payload that one table is."""
        return f"{{{self._metadata('Tables/@Element')}{self._members(name)}}}".encode("ascii")

    def feed(self, names: Iterable[str]) -> bytes:
        """Return the payload of a page of tables."""
        items = ",".join(f"{{{self._members(name)}}}" for name in names)
        return f'{{{self._metadata("Tables")}"value":[{items}]}}'.encode("ascii")


def error_payload(error: ServiceError, request_id: str, time: str) -> bytes:
    """Return the payload of an error; `time` has all seven digits of its fraction."""
    text = f"{error.message}\nRequestId:{request_id}\nTime:{time}"
    return (
        f'{{"odata.error":{{"code":{quote(error.code)},"message":{{"lang":"en-US","value":{quote(text)}}}}}}}'
    ).encode("ascii")
