"""JSON payloads out, at the three metadata levels. Source: reference §6, byte for byte.

Invariants: member order is the service's; every byte is ASCII. A `JsonEntityWriter` serializes a stored row
(table/model/row.py) without decoding values: minimal metadata is the stored form, the other levels cut and insert.
"""

import json
import re
import string
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quote

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.table.model.property_reader import SEARCHED_MAX, member_cutter, split_members
from lazulite.table.model.row import HEAD_BYTES, members_of
from lazulite.table.payload.feed import FeedFrame
from lazulite.table.payload.links import linked_key, table_link

_ANNOTATION = re.compile(rb',"[^"@]+@odata\.type":"Edm\.\w+"(?=,")')
_PARTITION_KEY = b',"PartitionKey":'
_ROW_KEY = b',"RowKey":'
_TIMESTAMP = b',"Timestamp":'
_TIMESTAMP_TYPE = b'"Timestamp@odata.type":"Edm.DateTime",'
_UNCHANGED_IN_LINKS = string.ascii_letters.encode() + string.digits.encode() + b"-_.~"


class MetadataLevel(StrEnum):
    """The amount of OData metadata in a payload; the value is its name in a media type."""

    NONE = "nometadata"
    MINIMAL = "minimalmetadata"
    FULL = "fullmetadata"


class JsonEntityWriter:
    """Serializes entities of one table. It is immutable, so requests with equal arguments can share one.

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
        """The start of the full metadata of every entity, up to its own address."""
        self._link_head = f"{table}(PartitionKey='".encode("ascii")
        self._table = table
        self._suffix = "" if select is None else "&$select=" + select_text.replace(" ", "%20")
        self._entity_metadata = self._metadata("/@Element").encode("ascii")
        """The start of the payload of a single entity."""
        self.item: Callable[[bytes], bytes] = self._members_writer(level, select)
        """From a row's value to the members of its JSON object."""

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
        """Return the payload of a single entity."""
        return b"{%b%b}" % (self._entity_metadata, self.item(value))

    def item_steps(self, value: bytes) -> Steps[bytes]:
        """Return the item of a row, in one step: cutting and copying is quick for rows of any size."""
        yield from ()
        return self.item(value)

    def entity_steps(self, value: bytes) -> Steps[bytes]:
        """Return the payload of a single entity, in one step."""
        yield from ()
        return self.entity(value)

    def feed(self, *, empty: bool) -> FeedFrame:
        """Return the payload of a page without its items; `empty`: it will have none."""
        opening = f'{{{self._metadata("")}"value":[{"" if empty else "{"}'.encode("ascii")
        return FeedFrame(opening, b"},{", b"]}" if empty else b"}]}")

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
        """Return the same as `_selected`, for so many names that splitting the row is quicker than searching it."""
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
    """Return the function that cuts a selected property out of a row's value."""
    cut = member_cutter(name, annotated=level is not MetadataLevel.NONE)
    if name == "Timestamp" and level is MetadataLevel.FULL:
        return lambda value: _TIMESTAMP_TYPE + (cut(value) or b"")
    return cut


def _etag_of(value: bytes) -> bytes:
    """Return the first stored member, which is the ETag."""
    return value[HEAD_BYTES : value.index(_PARTITION_KEY)]


def _linked_key(literal: bytes) -> bytes:
    """Return the form of a key in addresses, given its JSON string."""
    text = literal[1:-1]
    return _escaped_key(literal) if text.translate(None, _UNCHANGED_IN_LINKS) else text


@lru_cache(maxsize=256)  # A page often is all of one partition.
def _escaped_key(literal: bytes) -> bytes:
    return linked_key(json.loads(literal)).encode("ascii")


def _without_metadata(value: bytes) -> bytes:
    return _ANNOTATION.sub(b"", value[value.index(_PARTITION_KEY) + 1 :])


class JsonTableWriter:
    """Serializes tables for one request; arguments as `JsonEntityWriter`'s."""

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
        """Return the payload of a single table."""
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
