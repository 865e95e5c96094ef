"""The operations as HTTP, and the answers read again."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.torture.http_client import Answer, Operation, UnexpectedAnswerError, entity_path, raw, transaction, write

from .model import ROWS, Change, Entity, Partition, Rejection, Verb

TABLE = "Linearizability"
_INNER = re.compile(rb"HTTP/1\.1 (\d+) ")
_ETAG = re.compile(rb"^ETag: ([^\r]*)", re.MULTILINE | re.IGNORECASE)
_INDEX = re.compile(rb'"value":\s*"(\d+):')
_VERBS = {Verb.INSERT: "insert", Verb.REPLACE: "replace", Verb.MERGE: "merge", Verb.DELETE: "delete"}


def get_row(partition: str, row: int) -> bytes:
    """Return the request of a row."""
    return raw("GET", entity_path((TABLE, partition, str(row))))


def query_table(table: str) -> bytes:
    """Return the request of all rows of a table."""
    return raw("GET", f"{table}()")


def query_partition(partition: str) -> bytes:
    """Return the request of all rows of a partition."""
    return raw("GET", f"{TABLE}()", query=f"$filter=PartitionKey%20eq%20'{partition}'")


def write_changes(partition: str, changes: Iterable[tuple[Change, str | None]], writer: int) -> bytes:
    """Return the request of changes, each with its If-Match: of several, an entity group transaction."""
    operations = [_operation(partition, change, writer, etag) for change, etag in changes]
    return transaction(operations) if len(operations) > 1 else write(operations[0])


def _operation(partition: str, change: Change, writer: int, etag: str | None) -> Operation:
    verb = _VERBS[change.verb]
    if etag is None and change.verb is not Verb.INSERT:
        verb = f"insert or {verb}"
    content = {"W": writer, "B" if change.only_b else "A": writer}
    return Operation(verb, (TABLE, partition, str(change.row)), content, etag or "*")


class Seen(NamedTuple):
    """An entity and its ETag, as they were read."""

    entity: Entity
    etag: str


def read_entity(answer: Answer) -> Seen | None:
    """Read the answer to `get_row`."""
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise UnexpectedAnswerError(answer)
    return _seen(json.loads(answer.body))


def read_partition(answer: Answer) -> list[Seen | None]:
    """Read the answer to `query_partition`, all of which is one page."""
    if answer.status != 200:
        raise UnexpectedAnswerError(answer)
    rows: list[Seen | None] = [None] * ROWS
    for item in json.loads(answer.body)["value"]:
        rows[int(item["RowKey"])] = _seen(item)
    return rows


def entities(rows: Sequence[Seen | None]) -> Partition:
    return tuple(None if row is None else row.entity for row in rows)


def _seen(item: Mapping[str, int | str]) -> Seen:
    writer, a, b = (item.get(name) for name in ("W", "A", "B"))
    assert isinstance(writer, int)
    assert not isinstance(a, str)
    assert not isinstance(b, str)
    return Seen(Entity(writer, a, b), str(item["odata.etag"]))


def read_changes(answer: Answer, changes: int) -> tuple[Rejection | None, list[str]]:
    """Read the answer to `write_changes`: the rejection, or an ETag each (of a deletion, nothing)."""
    if changes > 1:
        return _read_transaction(answer, changes)
    if answer.status == 204:
        return None, [answer.headers.get("etag", "")]
    if answer.status not in (404, 409, 412):
        raise UnexpectedAnswerError(answer)
    return Rejection(0, answer.status), []


def _read_transaction(answer: Answer, changes: int) -> tuple[Rejection | None, list[str]]:
    if answer.status != 202:
        raise UnexpectedAnswerError(answer)
    _, *parts = _INNER.split(answer.body)
    statuses, bodies = [int(status) for status in parts[::2]], parts[1::2]
    if statuses == [204] * changes:
        return None, [found[1].decode() if (found := _ETAG.search(body)) else "" for body in bodies]
    index = _INDEX.search(bodies[0]) if len(bodies) == 1 else None
    if index is None or statuses[0] not in (404, 409, 412):
        raise UnexpectedAnswerError(answer)
    return Rejection(int(index[1]), statuses[0]), []
