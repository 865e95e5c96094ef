"""The client of the campaigns: raw HTTP on one connection, one request at a time, a SAS that is always valid.

An SDK costs more CPU per call than the server does; with this the server is the one that is busy.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Self
from urllib.parse import quote

from benchmarks.requests import ACCOUNT, account_sas

from tests.sdk.ledger import Content, Key

ANSWER_SECONDS_MAX = 60
"""No answer may take longer, however loaded the machine is."""
SAS = account_sas("9999-12-31T23:59:59Z")
_VERSION = "2019-02-02"
_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})", re.MULTILINE)
_CODE = re.compile(rb"(?i)^x-ms-error-code: (\w+)\r$", re.MULTILINE)
_ETAG = re.compile(rb"^ETag: (\S+)", re.MULTILINE)


class LostConnectionError(Exception):
    """The server cannot be reached, went away before it had answered, or does not answer at all."""


class HangError(LostConnectionError):
    """No answer came in `ANSWER_SECONDS_MAX`."""


class UnexpectedAnswerError(Exception):
    """A response that the operation never has."""


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes

    def statuses(self) -> list[int]:
        """Return the status of each operation: those inside the answer to a batch, or the answer's own."""
        return [int(found) for found in _STATUS.findall(self.body)] if self.status == 202 else [self.status]

    @property
    def outcome(self) -> int:
        """The status, or that of the operation that decided a batch."""
        return max(self.statuses(), default=self.status)

    @property
    def code(self) -> str:
        """The error code of the answer, or of an operation in it; "" if there is none."""
        found = _CODE.search(self.body)
        return self.headers.get("x-ms-error-code", found[1].decode() if found else "")

    def etags(self) -> list[str]:
        """Return the ETags that writes were given, in the order of the operations."""
        if self.status == 202:
            return [found.decode() for found in _ETAG.findall(self.body)]
        return [self.headers["etag"]] if "etag" in self.headers else []


class Connection:
    """A kept-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Use `open`."""
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, host: str) -> Self:
        """Connect to a host and port.

        Raises:
            LostConnectionError: no server listens.
        """
        name, _, port = host.rpartition(":")
        try:
            return cls(*await asyncio.open_connection(name, int(port)))
        except OSError as error:
            raise LostConnectionError(str(error)) from error

    async def ask(self, request: bytes) -> Answer:
        """Send a request and return its answer.

        Raises:
            LostConnectionError: there will be none.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                self.writer.write(request)
                head = await self.reader.readuntil(b"\r\n\r\n")
                status, *lines = head.decode("latin-1").rstrip().split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                # A proxy takes the length of nothing away, as RFC 9110 section 8.6 would have it.
                size = headers["content-length"] if status.split()[1] != "204" else "0"
                body = await self.reader.readexactly(int(size))
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            raise LostConnectionError(str(error)) from error
        except TimeoutError as error:
            raise HangError(f"no answer in {ANSWER_SECONDS_MAX} s") from error
        return Answer(int(status.split()[1]), headers, body)

    async def send(self, part: bytes) -> None:
        """Send the first part of a request; `ask` sends the rest. Raises `LostConnectionError`."""
        try:
            self.writer.write(part)
            await self.writer.drain()
        except ConnectionError as error:
            raise LostConnectionError(str(error)) from error

    async def leave(self, request: bytes) -> None:
        """Send a part of a request, or all of it, and end the connection at once. Raises `LostConnectionError`."""
        try:
            self.writer.write(request)
            await self.writer.drain()
        except ConnectionError as error:
            raise LostConnectionError(str(error)) from error
        finally:
            self.abort()

    def abort(self) -> None:
        """End the connection at once."""
        self.writer.transport.abort()

    async def close(self) -> None:
        """Let go of the connection."""
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


class Verb(NamedTuple):
    """A kind of write."""

    method: str
    conditional: bool
    """Whether it has an If-Match."""


VERBS = {
    "insert": Verb("POST", False),
    "replace": Verb("PUT", True),
    "merge": Verb("MERGE", True),
    "insert or replace": Verb("PUT", False),
    "insert or merge": Verb("MERGE", False),
    "delete": Verb("DELETE", True),
}


class Operation(NamedTuple):
    """A write of one entity."""

    verb: str
    key: Key
    content: Content
    etag: str = "*"

    def effect(self, before: Content | None) -> Content | None:
        """Return what the entity becomes."""
        if self.verb == "delete":
            return None
        return {**(before or {}), **self.content} if VERBS[self.verb].method == "MERGE" else self.content


def raw(method: str, resource: str, body: bytes = b"", query: str = "", **headers: str) -> bytes:
    """Return a request authorized by the SAS in its URL; `headers` are spelled with underscores."""
    return assembled(method, f"/{ACCOUNT}/{resource}?{query}{'&' if query else ''}{SAS}", body, headers)


def assembled(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a request to a target, query included, with its body and the headers of every request."""
    lines = {"Host": "localhost", "Accept": "application/json;odata=minimalmetadata", "x-ms-version": _VERSION}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    if body or method in ("POST", "PUT", "MERGE"):
        lines["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body


def entity_path(key: Key) -> str:
    """Return the path of an entity."""
    return f"{key[0]}(PartitionKey='{quote(key[1])}',RowKey='{quote(key[2])}')"


def create_table(name: str) -> bytes:
    """Return the request that creates a table."""
    return raw("POST", "Tables", json.dumps({"TableName": name}).encode(), Content_Type="application/json")


def delete_table(name: str) -> bytes:
    """Return the request that deletes a table."""
    return raw("DELETE", f"Tables('{name}')")


def write(operation: Operation) -> bytes:
    """Return the request of a single write."""
    resource, body, headers = _parts(operation)
    return raw(VERBS[operation.verb].method, resource, body, **headers)


def transaction(operations: Sequence[Operation]) -> bytes:
    """Return the entity group transaction of some writes."""
    body = [b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"]
    for operation in operations:
        resource, content, headers = _parts(operation)
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        body.append(
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            f"{VERBS[operation.verb].method} http://localhost/{ACCOUNT}/{resource} HTTP/1.1\r\n{lines}\r\n".encode()
            + content
            + b"\r\n"
        )
    body.append(b"--c--\r\n--b--\r\n")
    return raw("POST", "$batch", b"".join(body), Content_Type="multipart/mixed; boundary=b")


def _parts(operation: Operation) -> tuple[str, bytes, dict[str, str]]:
    """Return the resource, the body and the headers of a write."""
    verb, key = VERBS[operation.verb], operation.key
    headers = {"If_Match": operation.etag} if verb.conditional else {}
    if verb.method == "DELETE":
        return entity_path(key), b"", headers
    headers["Content_Type"] = "application/json"
    if verb.method == "POST":
        headers["Prefer"] = "return-no-content"
    body = json.dumps({"PartitionKey": key[1], "RowKey": key[2], **operation.content}).encode()
    return key[0] if verb.method == "POST" else entity_path(key), body, headers
