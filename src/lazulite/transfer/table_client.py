"""Tables at an endpoint: pages of queries, entity group transactions, and what a server says of a row."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncGenerator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import quote

from lazulite.transfer.http_client import Response, Sender, TransferError
from lazulite.transfer.values import KEYS, Entity

BATCH_ROWS_MAX = 100
BATCH_BYTES_MAX = 3_900_000
"""Below the 4 MiB that a service accepts."""
_HEADERS: Final = {
    "Accept": "application/json;odata=minimalmetadata",
    "DataServiceVersion": "3.0",
    "MaxDataServiceVersion": "3.0;NetFx",
}
_JSON: Final = {**_HEADERS, "Content-Type": "application/json"}
_MARKS: Final = {name: f"x-ms-continuation-{name.lower()}" for name in ("NextPartitionKey", "NextRowKey")}
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.~-]*")
_FAILED_PART = re.compile(rb"HTTP/1\.1 (\d{3})")
_INDEX = re.compile(r"(\d{1,3}):")
_MESSAGE_MAX = 300
FATAL: Final = {401, 403, 404, 405, 411}
"""Statuses that every row would have."""


class Mode(StrEnum):
    """What is done to an entity that exists."""

    INSERT = "insert"
    """Nothing: the row fails."""
    MERGE = "merge"
    REPLACE = "replace"


_METHODS: Final = {Mode.INSERT: "POST", Mode.MERGE: "MERGE", Mode.REPLACE: "PUT"}


class PreparedRow(NamedTuple):
    """A row of a file, ready to be sent."""

    number: int
    partition_key: str
    row_key: str
    body: bytes
    """The JSON of the entity."""


class Transaction(NamedTuple):
    """The body of an entity group transaction."""

    boundary: str
    body: bytes


class RejectedError(Exception):
    """A service rejects a request."""

    def __init__(self, status: int, code: str, message: str, index: int | None, *, was_retried: bool) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.status, self.code = status, code
        self.was_retried = was_retried
        """An earlier request of the same may have been done."""
        self.index = index
        """Which row of a transaction it is about; None: all, or unknown."""


class Query(NamedTuple):
    """Which entities of a table are asked for."""

    filter: str = ""
    """A `$filter`."""
    select: Sequence[str] = ()
    """Names of properties besides the keys; none for all."""
    first_partition: str | None = None
    last_partition: str | None = None
    """Inclusive."""

    def parameters(self) -> str:
        """Return the query parameters, encoded."""
        terms = [f"({self.filter})"] if self.filter else []
        for key, operator in ((self.first_partition, "ge"), (self.last_partition, "le")):
            if key is not None:
                terms.append("PartitionKey {} '{}'".format(operator, key.replace("'", "''")))
        given = {"$filter": " and ".join(terms), "$select": ",".join(self.columns() or ())}
        return "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items() if value)

    def columns(self) -> list[str] | None:
        """Return the names of the properties that are asked for, with the keys; None for all."""
        return [*dict.fromkeys((*KEYS, *self.select))] if self.select else None


class TableClient:
    """The tables of an account."""

    def __init__(self, http: Sender) -> None:
        self._http = http

    @property
    def endpoint(self) -> str:
        """The URL of the account at the service."""
        return self._http.endpoint

    async def create(self, table: str) -> bool:
        """Create a table; return whether it is new.

        Raises:
            TransferError: it cannot be created.
        """
        body = json.dumps({"TableName": table}).encode()
        response = await self._http.send("POST", "Tables", headers={**_JSON, "Prefer": "return-no-content"}, body=body)
        if response.status < 300:
            return True
        error = _rejection(response)
        if error.code == "TableAlreadyExists":
            return False
        raise TransferError(f"the table {table} cannot be created: {error}")

    async def pages(self, table: str, query: Query) -> AsyncGenerator[list[Entity], None]:
        """Yield the entities of each page, which may be empty. The next page is on its way meanwhile.

        Raises:
            TransferError: the query is rejected, or no server responds.
        """
        given = query.parameters()
        fetching = asyncio.create_task(self._page(table, given, ""))
        try:
            while True:
                response = await fetching
                marks = [
                    f"{name}={quote(response.headers[mark], safe='')}"
                    for name, mark in _MARKS.items()
                    if mark in response.headers
                ]
                if marks:
                    fetching = asyncio.create_task(self._page(table, given, "&".join(marks)))
                    await asyncio.sleep(0)  # It is sent before this page is read.
                yield _entities(response.body, bool(query.select))
                if not marks:
                    return
        finally:
            fetching.cancel()

    async def _page(self, table: str, given: str, marks: str) -> Response:
        response = await self._http.send("GET", f"{table}()", "&".join(filter(None, (given, marks))), _HEADERS)
        if response.status != 200:
            raise TransferError(f"{self.endpoint} rejects the query: {_rejection(response)}")
        return response

    async def get(self, table: str, row: PreparedRow) -> Entity | None:
        """Return the stored entity that has the keys of a row; None without one."""
        response = await self._http.send("GET", _resource(table, row), headers=_HEADERS)
        if response.status == 404:
            return None
        if response.status != 200:
            raise TransferError(f"{self.endpoint} rejects the request: {_rejection(response)}")
        entity = json.loads(response.body)
        assert isinstance(entity, dict)
        return entity

    async def commit(self, table: str, rows: Sequence[PreparedRow], mode: Mode) -> None:
        """Store rows of one partition, all or none.

        Raises:
            RejectedError: the service rejects one or all.
            TransferError: no server responds.
        """
        if len(rows) == 1:
            await self._store(table, rows[0], mode)
            return
        await self.send_transaction(self.transaction(table, rows, mode))

    async def send_transaction(self, transaction: Transaction) -> None:
        """Send a transaction. Raises as `commit`."""
        headers = {**_HEADERS, "Content-Type": f"multipart/mixed; boundary={transaction.boundary}"}
        response = await self._http.send("POST", "$batch", headers=headers, body=transaction.body)
        if response.status != 202:
            raise _rejection(response)
        failed = [status for status in _FAILED_PART.findall(response.body) if status >= b"300"]
        if failed:
            raise _failed_part(response, int(failed[0]))

    async def _store(self, table: str, row: PreparedRow, mode: Mode) -> None:
        path = table if mode is Mode.INSERT else _resource(table, row)
        headers = {**_JSON, "Prefer": "return-no-content"}
        response = await self._http.send(_METHODS[mode], path, headers=headers, body=row.body)
        if response.status >= 300:
            raise _rejection(response)

    def transaction(self, table: str, rows: Sequence[PreparedRow], mode: Mode) -> Transaction:
        """Return the entity group transaction that stores rows."""
        boundary, changes = f"batch_{secrets.token_hex(8)}", f"changeset_{secrets.token_hex(8)}"
        method, base = _METHODS[mode], self.endpoint
        start = (
            f"--{changes}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            f"{method} {base}/{table}"
        )
        end = (
            " HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\n"
            "Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n"
        ).encode("ascii")
        parts = [f"--{boundary}\r\nContent-Type: multipart/mixed; boundary={changes}\r\n\r\n".encode("ascii")]
        if mode is Mode.INSERT:
            head = start.encode("ascii") + end
            for row in rows:
                parts += (head, row.body, b"\r\n")
        else:
            for row in rows:
                parts += (f"{start}{_keys(row)}".encode("ascii"), end, row.body, b"\r\n")
        parts.append(f"--{changes}--\r\n--{boundary}--\r\n".encode("ascii"))
        return Transaction(boundary, b"".join(parts))


def _entities(body: bytes, is_projection: bool) -> list[Entity]:
    """Return the entities of a page. A projection has nulls for properties that are missing."""
    entities: list[Entity] = json.loads(body)["value"]
    for entity in entities:
        entity.pop("odata.etag", None)
    if is_projection:
        for entity in entities:
            for name in [name for name, value in entity.items() if value is None and "@" not in name]:
                del entity[name]
                entity.pop(f"{name}@odata.type", None)
    return entities


def _keys(row: PreparedRow) -> str:
    return f"(PartitionKey='{_key(row.partition_key)}',RowKey='{_key(row.row_key)}')"


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else quote(key.replace("'", "''"), safe="")


def _resource(table: str, row: PreparedRow) -> str:
    return f"{table}{_keys(row)}"


def _rejection(response: Response) -> RejectedError:
    code = response.headers.get("x-ms-error-code", "")
    return _error(response.status, code, response.body, response)


def _failed_part(response: Response, status: int) -> RejectedError:
    """Return the error of the part of a response that failed."""
    body = response.body
    return _error(status, "", body[body.find(b"{") : body.rfind(b"}") + 1], response)


def _error(status: int, code: str, body: bytes, response: Response) -> RejectedError:
    try:
        error = json.loads(body)["odata.error"]
        code, message = str(error["code"]), str(error["message"]["value"])
    except (ValueError, LookupError, TypeError):
        message = ""
    found = _INDEX.match(message)
    if found:
        message = message[found.end() :]
    message = " ".join(message.partition("\n")[0].split())[:_MESSAGE_MAX]
    return RejectedError(
        status,
        code or f"HTTP status {status}",
        message,
        int(found[1]) if found else None,
        was_retried=response.was_retried,
    )
