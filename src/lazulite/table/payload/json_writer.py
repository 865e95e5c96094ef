"""JSON payloads out, at the three metadata levels. Source: reference §6, byte for byte.

Invariants: member order is the service's; every byte is ASCII. A `JsonEntityWriter` spells the members of a stored row
(table/model/row.py) without decoding values: minimal metadata is what is stored, the other levels cut and insert.
"""

import json
import re
import string
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quote

from lazulite.protocol.errors import ServiceError
from lazulite.table.model.row import HEAD_BYTES, SEARCHED_MAX, member_cutter, members_of, split_members
from lazulite.table.payload.links import linked_key, table_link

_ANNOTATION = re.compile(rb',"[^"@]+@odata\.type":"Edm\.\w+"(?=,")')
_PARTITION_KEY = b',"PartitionKey":'
_ROW_KEY = b',"RowKey":'
_TIMESTAMP = b',"Timestamp":'
_TIMESTAMP_TYPE = b'"Timestamp@odata.type":"Edm.DateTime",'
_UNCHANGED_IN_LINKS = string.ascii_letters.encode() + string.digits.encode() + b"-_.~"


class MetadataLevel(StrEnum):
    """How much OData metadata a payload carries; the value is its spelling in a media type."""

    NONE = "nometadata"
    MINIMAL = "minimalmetadata"
    FULL = "fullmetadata"


class JsonEntityWriter:
    """Spells entities of one table. It does not change, so requests that want the same can share one.

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
        self._head = f'"odata.type":{quote(f"{account}.{table}")},"odata.id":{quote(base)[:-1]}'.encode("ascii")
        """What full metadata of every entity begins with, up to where its own address begins."""
        self._link_head = f"{table}(PartitionKey='".encode("ascii")
        self._table = table
        self._suffix = "" if select is None else "&$select=" + select_text.replace(" ", "%20")
        self._entity_metadata = self._metadata("/@Element").encode("ascii")
        """What the payload of one entity begins with."""
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
        return b"{%b%b}" % (self._entity_metadata, self.item(value))

    def feed(self, items: Iterable[bytes]) -> bytes:
        """Return the payload of a page, from what `item` gave for each entity."""
        parts = list(items)
        head = f'{{{self._metadata("")}"value":['.encode("ascii")
        if not parts:
            return head + b"]}"
        parts[0] = b"%b{%b" % (head, parts[0])  # Joined once: a page may be many megabytes.
        parts[-1] += b"}]}"
        return b"},{".join(parts)

    def _with_full_metadata(self, value: bytes) -> bytes:
        keys_at = value.index(_PARTITION_KEY)
        after_keys = value.index(_TIMESTAMP, keys_at) + 1
        return b"%b%b%b%b" % (
            self._full_head(value),
            value[keys_at:after_keys],
            _TIMESTAMP_TYPE,
            value[after_keys:],
        )

    def _full_head(self, value: bytes) -> bytes:
        partition_at = value.index(_PARTITION_KEY)
        row_at = value.index(_ROW_KEY, partition_at)
        link = b"%b%b',RowKey='%b')" % (
            self._link_head,
            _linked_key(value[partition_at + len(_PARTITION_KEY) : row_at]),
            _linked_key(value[row_at + len(_ROW_KEY) : value.index(_TIMESTAMP, row_at)]),
        )
        return b'%b%b",%b,"odata.editLink":"%b"' % (self._head, link, value[HEAD_BYTES:partition_at], link)

    def _selected(self, level: MetadataLevel, names: Sequence[str]) -> Callable[[bytes], bytes]:
        names = list(dict.fromkeys(names))
        if len(names) > SEARCHED_MAX:
            return self._selected_at_once(level, names)
        columns = [(_column(name, level), f"{quote(name)}:null".encode("ascii")) for name in names]
        if level is MetadataLevel.NONE:
            return lambda value: b",".join([cut(value) or absent for cut, absent in columns])
        head = self._full_head if level is MetadataLevel.FULL else _etag_of
        return lambda value: b",".join([head(value), *[cut(value) or absent for cut, absent in columns]])

    def _selected_at_once(self, level: MetadataLevel, names: Sequence[str]) -> Callable[[bytes], bytes]:
        """Return the same as `_selected`, for so many names that it is quicker to take the row apart."""
        annotated, full = level is not MetadataLevel.NONE, level is MetadataLevel.FULL
        columns = [(quote(name)[1:-1].encode("ascii"), f"{quote(name)}:null".encode("ascii")) for name in names]
        head = self._full_head if full else _etag_of

        def item(value: bytes) -> bytes:
            members = split_members(value, annotated=annotated)
            if full:
                members[b"Timestamp"] = _TIMESTAMP_TYPE + members[b"Timestamp"]
            parts = [members.get(name, absent) for name, absent in columns]
            return b",".join([head(value), *parts] if annotated else parts)

        return item


def _column(name: str, level: MetadataLevel) -> Callable[[bytes], bytes | None]:
    """Return what cuts a selected property out of a row's value."""
    cut = member_cutter(name, annotated=level is not MetadataLevel.NONE)
    if name == "Timestamp" and level is MetadataLevel.FULL:
        return lambda value: _TIMESTAMP_TYPE + (cut(value) or b"")
    return cut


def _etag_of(value: bytes) -> bytes:
    """Return the first of the stored members, which is the ETag."""
    return value[HEAD_BYTES : value.index(_PARTITION_KEY)]


def _linked_key(literal: bytes) -> bytes:
    """Return a key, of which the JSON string is given, as it stands in addresses."""
    text = literal[1:-1]
    return _escaped_key(literal) if text.translate(None, _UNCHANGED_IN_LINKS) else text


@lru_cache(maxsize=256)  # A page often is all of one partition.
def _escaped_key(literal: bytes) -> bytes:
    return linked_key(json.loads(literal)).encode("ascii")


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
