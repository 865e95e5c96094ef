"""The operations as HTTP, and the answers read again: no SDK, which would take most of the time."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.conformance.sas import account_sas
from tests.conformance.signing import Endpoint
from tests.server_process import Account

from .connection import Answer
from .model import ROWS, Change, Entity, Partition, Rejection, Verb

TABLE = "Linearizability"
_JSON = "Accept: application/json;odata=minimalmetadata\r\n"
_PART = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
_INNER = re.compile(rb"HTTP/1\.1 (\d+) ")
_ETAG = re.compile(rb"^ETag: ([^\r]*)", re.MULTILINE | re.IGNORECASE)
_INDEX = re.compile(rb'"value":\s*"(\d+):')


class UnexpectedAnswerError(Exception):
    """An answer that the operation never has."""


class Wire:
    """Spells requests to one server."""

    def __init__(self, account: Account) -> None:
        endpoint = Endpoint.parse(account.endpoint, account.name, account.key)
        self.host, _, port = account.host.partition(":")
        self.port = int(port)
        self._prefix = endpoint.prefix
        self._sas = account_sas(endpoint, {})
        self._head = f"Host: {account.host}\r\nx-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\n{_JSON}"

    def create_table(self, table: str = TABLE) -> bytes:
        return self._request("POST", "Tables", "", {"TableName": table})

    def delete_table(self, table: str) -> bytes:
        return self._request("DELETE", f"Tables('{table}')", "", None)

    def query_table(self, table: str) -> bytes:
        return self._request("GET", f"{table}()", "", None)

    def get(self, partition: str, row: int) -> bytes:
        return self._request("GET", f"{TABLE}(PartitionKey='{partition}',RowKey='{row}')", "", None)

    def query(self, partition: str) -> bytes:
        return self._request("GET", f"{TABLE}()", "", None, f"$filter=PartitionKey%20eq%20'{partition}'&")

    def change(self, partition: str, change: Change, writer: int, etag: str | None) -> bytes:
        return self._request(change.verb.value, *_spelled(partition, change, writer, etag))

    def transaction(self, partition: str, changes: Iterable[tuple[Change, str | None]], writer: int) -> bytes:
        """Spell several changes, each with its If-Match, as one entity group transaction."""
        parts = ["--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"]
        for change, etag in changes:
            path, headers, entity = _spelled(partition, change, writer, etag)
            head = f"{change.verb.value} {self._prefix}/{path} HTTP/1.1\r\n{_JSON}{headers}"
            parts.append(f"--c\r\n{_PART}{_with_body(head, entity)}\r\n")
        parts.append("--c--\r\n--b--\r\n")
        body = "".join(parts)
        return (
            f"POST {self._prefix}/$batch?{self._sas} HTTP/1.1\r\n{self._head}"
            f"Content-Type: multipart/mixed; boundary=b\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()

    def _request(
        self, method: str, path: str, headers: str, entity: Mapping[str, int | str] | None, query: str = ""
    ) -> bytes:
        head = f"{method} {self._prefix}/{path}?{query}{self._sas} HTTP/1.1\r\n{self._head}{headers}"
        return _with_body(head, entity).encode()


def _with_body(head: str, entity: Mapping[str, int | str] | None) -> str:
    if entity is None:
        return head + "\r\n"
    body = json.dumps(entity)
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"


def _spelled(
    partition: str, change: Change, writer: int, etag: str | None
) -> tuple[str, str, Mapping[str, int | str] | None]:
    """Return path, headers of its own and entity of a change."""
    headers = "" if etag is None else f"If-Match: {etag}\r\n"
    entity: dict[str, int | str] = {"W": writer, "B" if change.only_b else "A": writer}
    if change.verb is Verb.INSERT:
        keys = {"PartitionKey": partition, "RowKey": str(change.row)}
        return TABLE, "Prefer: return-no-content\r\n", keys | entity
    path = f"{TABLE}(PartitionKey='{partition}',RowKey='{change.row}')"
    return path, headers, None if change.verb is Verb.DELETE else entity


class Seen(NamedTuple):
    """An entity and its ETag, as they were read."""

    entity: Entity
    etag: str


def read_entity(answer: Answer) -> Seen | None:
    """Read the answer to `Wire.get`."""
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise UnexpectedAnswerError(answer)
    return _seen(json.loads(answer.body))


def read_partition(answer: Answer) -> list[Seen | None]:
    """Read the answer to `Wire.query`, all of which is one page."""
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


def read_change(answer: Answer) -> tuple[Rejection | None, list[str]]:
    """Read the answer to `Wire.change`: the rejection, or the ETag."""
    if answer.status == 204:
        return None, [answer.etag]
    if answer.status not in (404, 409, 412):
        raise UnexpectedAnswerError(answer)
    return Rejection(0, answer.status), []


def read_transaction(answer: Answer, changes: int) -> tuple[Rejection | None, list[str]]:
    """Read the answer to `Wire.transaction`: the rejection, or an ETag each (of a deletion, nothing)."""
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
