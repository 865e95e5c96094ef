"""The formats of responses, and the readers of request bodies.

Invariant: an operation holds a `Format` or a `Reader` and never asks which one it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from lazulite.engine.contract import Clock
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.table.model.entity import EncodedEntity, Entity, encode_entity
from lazulite.table.model.row import Property
from lazulite.table.payload import atom, json_reader, json_writer
from lazulite.table.payload.atom import AtomEntityWriter, AtomTableWriter
from lazulite.table.payload.interfaces import EntityWriter, TableWriter
from lazulite.table.payload.json_pattern import TablePatterns
from lazulite.table.payload.json_writer import JsonEntityWriter, JsonTableWriter, MetadataLevel

_CACHED_LENGTH_MAX = 256
"""Clients repeat the account's URL on each request; the writer for a URL of up to this many characters is cached."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of responses. Its media types have no blanks, as the service writes them."""

    entity_type: str
    """The Content-Type of one entity or table."""
    feed_type: str
    """The Content-Type of a page of them."""
    error_type: str
    """The Content-Type of an error."""
    batch_error_type: str
    """The Content-Type of an error inside a batch."""
    odata_version: int
    """The version of OData that defines the format."""
    entity_writer: Callable[[str, str, str, Clock, Sequence[str] | None, str], EntityWriter]
    """Takes the account's base URL and name, the table's name as the request wrote it, the clock, the names selected in
    order (None for all) and the raw `$select` text."""
    table_writer: Callable[[str, str, Clock], TableWriter]
    """Takes the account's base URL and name, and the clock."""
    check: Callable[[str, str, Mapping[str, Property]], Steps[None]] | None
    """Takes an entity's two keys and its properties; rejects an entity that the writers could not serialize once it is
    stored. None: the format has every entity."""
    error: Callable[[ServiceError, str, str], bytes]
    """Takes an error, the request's id and the time with all seven digits of its fraction to the payload."""
    writer_lasts: bool
    """Whether an entity writer serves later requests as well: it holds no time."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A format of request bodies, which are read in steps."""

    usual: Callable[[TablePatterns, bytes, bool], EncodedEntity | None]
    """As `encoded`, in one short step; None if the body matches no pattern."""
    entity: Callable[[bytes], Steps[Entity]]
    encoded: Callable[[bytes, bool, TablePatterns], Steps[EncodedEntity]]
    """From a body to its entity, ready to be stored. Takes the body, whether the properties are ordered by name, and
    the patterns of the table's bodies."""
    table_name: Callable[[bytes], Steps[str]]
    """From the body of a Create Table to the table's name."""


def _json(level: MetadataLevel) -> Format:
    cached = lru_cache(maxsize=256)(partial(JsonEntityWriter, level))

    def entity_writer(
        base: str, account: str, table: str, _: Clock, select: Sequence[str] | None, select_text: str
    ) -> JsonEntityWriter:
        if select is None and len(base) <= _CACHED_LENGTH_MAX:
            return cached(base, account, table)
        return JsonEntityWriter(level, base, account, table, select, select_text)

    def table_writer(base: str, account: str, _: Clock) -> JsonTableWriter:
        return JsonTableWriter(level, base, account)

    content_type = f"application/json;odata={level.value};streaming=true;charset=utf-8"
    types = (content_type,) * 4
    return Format(*types, 3, entity_writer, table_writer, None, json_writer.error_payload, True)


def _atom_entity_writer(
    base: str, account: str, table: str, clock: Clock, select: Sequence[str] | None, _: str
) -> AtomEntityWriter:
    return AtomEntityWriter(base, account, table, clock(), select)


def _atom_table_writer(base: str, account: str, clock: Clock) -> AtomTableWriter:
    return AtomTableWriter(base, account, clock())


JSON = {level: _json(level) for level in MetadataLevel}
MINIMAL = JSON[MetadataLevel.MINIMAL]
ATOM = Format(
    "application/atom+xml;type=entry;charset=utf-8",
    "application/atom+xml;type=feed;charset=utf-8",
    "application/xml;charset=utf-8",
    "application/xml",
    1,
    _atom_entity_writer,
    _atom_table_writer,
    atom.check,
    atom.error_payload,
    False,
)


def _atom_encoded(body: bytes, by_name: bool, _: TablePatterns) -> Steps[EncodedEntity]:
    return encode_entity((yield from atom.read_entity(body)), by_name)


JSON_READER = Reader(
    TablePatterns.encode, json_reader.read_entity, json_reader.read_encoded, json_reader.read_table_name
)
ATOM_READER = Reader(lambda *_: None, atom.read_entity, _atom_encoded, atom.read_table_name)
