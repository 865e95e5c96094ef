"""The formats that entities, tables and errors are spelled in, and those that they are read from.

Invariant: an operation holds a `Format` or a `Reader` and never asks which one it is.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.table.entity import Entity
from lazulite.table.payload import json_in
from lazulite.table.payload.json_out import JsonEntityWriter, JsonTableWriter, MetadataLevel, error_payload
from lazulite.table.payload.writers import EntityWriter, TableWriter


class Format(NamedTuple):
    """A spelling of answers."""

    content_type: str
    """The Content-Type of an answer, written without blanks as the service does."""
    entity_writer: Callable[[str, str, str, Sequence[str] | None, str], EntityWriter]
    """Takes the account's base URL and name, the table's name as the request wrote it, the names selected in order
    (None for all) and the raw `$select` text."""
    table_writer: Callable[[str, str], TableWriter]
    """Takes the account's base URL and name."""
    error: Callable[[ServiceError, str, str], bytes]
    """Takes an error, the request's id and the time with all seven digits of its fraction to the payload."""


class Reader(NamedTuple):
    """A spelling of request bodies."""

    entity: Callable[[bytes], Entity]
    table_name: Callable[[bytes], str]
    """Takes the body of a Create Table to the name wanted."""


def _json(level: MetadataLevel) -> Format:
    def entity_writer(
        base: str, account: str, table: str, select: Sequence[str] | None, select_text: str
    ) -> JsonEntityWriter:
        return JsonEntityWriter(level, base, account, table, select, select_text)

    def table_writer(base: str, account: str) -> JsonTableWriter:
        return JsonTableWriter(level, base, account)

    content_type = f"application/json;odata={level.value};streaming=true;charset=utf-8"
    return Format(content_type, entity_writer, table_writer, error_payload)


JSON = {level: _json(level) for level in MetadataLevel}
MINIMAL = JSON[MetadataLevel.MINIMAL]
JSON_READER = Reader(json_in.read_entity, json_in.read_table_name)
