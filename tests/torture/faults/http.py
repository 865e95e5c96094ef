"""HTTP as the clients of the fault campaign speak it: one connection, one request at a time."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast
from urllib.parse import quote

from azure.data.tables import AccountSasPermissions, ResourceTypes, generate_account_sas

from tests.sdk.ledger import Content, Key, Stored
from tests.server_process import Account

ANSWER_SECONDS_MAX = 60.0
"""The longest that an answer may take: longer is a hang."""

_ETAG = re.compile(rb"(?i)^ETag: (\S+)\r$", re.MULTILINE)
_LENGTH = re.compile(rb"(?i)^Content-Length: (\d+)\r$", re.MULTILINE)
_CODE = re.compile(rb"(?i)^x-ms-error-code: (\w+)\r$", re.MULTILINE)
_INNER_STATUS = re.compile(rb"^HTTP/1\.1 (\d+)", re.MULTILINE)


class Answer(NamedTuple):
    """A response."""

    status: int
    head: bytes
    body: bytes

    @property
    def etags(self) -> list[str]:
        """The ETag, or those of a batch's operations."""
        return [etag.decode() for etag in _ETAG.findall(self.head + self.body)]

    @property
    def code(self) -> str:
        """The error code; "" if there is none."""
        found = _CODE.search(self.head + self.body)
        return found[1].decode() if found else ""

    @property
    def outcome(self) -> int:
        """The status, or that of the operation that decided a batch."""
        inner = _INNER_STATUS.findall(self.body) if self.status == 202 else ()
        return max((int(status) for status in inner), default=self.status)


class Http:
    """One connection, made anew when it is lost."""

    def __init__(self, account: Account) -> None:
        self._host, _, port = account.host.partition(":")
        self._port = int(port)
        self._path = f"/{account.name}"
        self._sas = generate_account_sas(
            account.credential,
            ResourceTypes(service=True, container=True, object=True),
            AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True, update=True),
            datetime.now(UTC) + timedelta(days=1),
        )
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, resource: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a request, and return the answer.

        Raises:
            ConnectionError: there is no connection, or it ended before the answer.
            TimeoutError: it hangs.
        """
        path = resource if resource.startswith("/") else f"{self._path}/{resource}"
        path += ("&" if "?" in path else "?") + self._sas if path != "/health" else ""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}:{self._port}", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await self._exchange("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        except BaseException as error:
            self.close()
            if isinstance(error, asyncio.IncompleteReadError):
                raise ConnectionError("the connection ended before the answer") from error
            raise

    async def _exchange(self, request: bytes) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(request)
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length[1])) if length else b""
        if b"\r\nconnection: close\r\n" in head.lower():
            self.close()
        return Answer(int(head.split(b" ", 2)[1]), head, body)

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


Effects = Mapping[Key, Content | None]
"""What an operation leaves under each key of one partition; None: nothing."""


async def send(http: Http, effects: Effects) -> Answer:
    """Do a write: upserts and deletions, in an entity group transaction if there are several."""
    if len(effects) == 1:
        method, resource, body, headers = _single(*next(iter(effects.items())))
        return await http.request(method, resource, body, **headers)
    parts = []
    for key, content in effects.items():
        method, resource, body, headers = _single(key, content)
        head = [
            "--changeset_1",
            "Content-Type: application/http",
            "Content-Transfer-Encoding: binary",
            "",
            f"{method} http://localhost/devstoreaccount1/{resource} HTTP/1.1",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
            "",
            body.decode(),
        ]
        parts += head
    text = ["--batch_1", "Content-Type: multipart/mixed; boundary=changeset_1", "", *parts]
    text += ["--changeset_1--", "--batch_1--", ""]
    return await http.request(
        "POST", "$batch", "\r\n".join(text).encode(), Content_Type="multipart/mixed; boundary=batch_1"
    )


def _single(key: Key, content: Content | None) -> tuple[str, str, bytes, dict[str, str]]:
    table, partition, row = key
    resource = f"{table}(PartitionKey='{partition}',RowKey='{row}')"
    if content is None:
        return "DELETE", resource, b"", {"If_Match": "*", "Accept": "application/json"}
    body = json.dumps({"PartitionKey": partition, "RowKey": row, **content}).encode()
    return "PUT", resource, body, {"Content_Type": "application/json", "Accept": "application/json"}


async def query(http: Http, table: str, filter_text: str) -> tuple[Answer, dict[Key, Stored]]:
    """Return the answer to a query, and the rows if there is one."""
    answer = await http.request("GET", f"{table}()?$filter={quote(filter_text)}", Accept="application/json")
    return answer, (rows(table, json.loads(answer.body)["value"]) if answer.status == 200 else {})


def rows(table: str, entities: Iterable[object]) -> dict[Key, Stored]:
    """Return entities as they are in a response, by key."""
    found: dict[Key, Stored] = {}
    for each in entities:
        entity = cast("dict[str, str | int]", each)
        etag = str(entity["odata.etag"])
        key = (table, str(entity["PartitionKey"]), str(entity["RowKey"]))
        own = {"PartitionKey", "RowKey", "Timestamp"}
        found[key] = Stored(etag, {n: v for n, v in entity.items() if n not in own and "odata" not in n})
    return found
