"""An HTTP/1.1 client of one endpoint, with connections that are kept open. It retries what a server could not do.

Invariants: a head, a body and a wait are bounded. No URL of a request is in an error, as it has a signature.
"""

import asyncio
import re
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, Self
from urllib.parse import urlsplit

HEAD_BYTES_MAX = 64 << 10
BODY_BYTES_MAX = 64 << 20
SECONDS_MAX = 90.0
"""For one request and its response."""
_BUFFER_BYTES = 4 << 20
RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0)
"""The pauses before the retries."""
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]*))?")


class TransferError(Exception):
    """A transfer cannot go on. The text is one line for the user, without secrets."""


class UnavailableError(TransferError):
    """A server did not respond, or said that it cannot now. The same request may succeed later."""


class Response(NamedTuple):
    """A response."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes
    was_retried: bool = False
    """An earlier request of the same may have been done, too."""


class Sender(Protocol):
    """Sends requests to one endpoint, as one account."""

    @property
    def endpoint(self) -> str:
        """The URL of the account at the service, without a slash at its end."""
        ...

    async def send(
        self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        """Send a request, see `HttpClient.send`."""
        ...


class _Connection(NamedTuple):
    reader: StreamReader
    writer: StreamWriter


class HttpClient:
    """Sends requests to one endpoint. Use it as an asynchronous context manager.

    Args:
        endpoint: the URL of the account at a service, without a slash at its end.
        token: returns the SAS token of the next request.
        host: the address to connect to; "": that of the endpoint.
        hint: what to check if no server responds; "": nothing.
    """

    def __init__(self, endpoint: str, token: Callable[[], str], host: str = "", hint: str = "") -> None:
        url = urlsplit(endpoint)
        self._endpoint = endpoint
        self._secure = url.scheme == "https"
        self._host, self._port = host or url.hostname or "", url.port or (443 if self._secure else 80)
        self._name = url.hostname or ""
        self._common = f"Host: {url.netloc}\r\nx-ms-version: 2021-12-02\r\n"
        self._path = url.path
        self._token = token
        self._hint = hint and f"; {hint}"
        self._idle: list[_Connection] = []
        self._has_answered = False

    @property
    def endpoint(self) -> str:
        """See `Sender`."""
        return self._endpoint

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._idle:
            self._idle.pop().writer.close()

    async def send(
        self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        """Send a request until a server has an answer to it.

        Args:
            method: the method.
            path: the path below the endpoint, encoded.
            query: the query parameters, encoded.
            headers: the headers besides Host, Content-Length and the version.
            body: the body.

        Raises:
            UnavailableError: there was none after the last retry, or at once.
        """
        problem = ""
        for attempt, pause in enumerate((*RETRY_SECONDS, None)):
            try:
                async with asyncio.timeout(SECONDS_MAX):
                    response = await self._exchange(method, path, query, headers or {}, body)
            except (OSError, EOFError, TimeoutError, ValueError, asyncio.LimitOverrunError) as error:
                problem = str(error) or "it took too long"
                if not self._has_answered:  # The address may be wrong.
                    break
            else:
                self._has_answered = True
                if response.status not in (429, 500, 502, 503, 504):
                    return response._replace(was_retried=attempt > 0)
                problem = f"HTTP status {response.status}"
            if pause is not None:
                await asyncio.sleep(pause)
        raise UnavailableError(f"no response from {self.endpoint}: {problem}{self._hint}")

    async def _exchange(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Send a request on an idle connection, or a new one, and read the response.

        A connection that the server closed while it was idle is no answer, so another one is taken.
        """
        target = f"{self._path}/{path}?{query}{'&' if query else ''}{self._token()}"
        fields = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        length = f"Content-Length: {len(body)}\r\n" if body or method != "GET" else ""
        head = f"{method} {target} HTTP/1.1\r\n{self._common}{fields}{length}\r\n".encode("ascii")
        while True:
            is_new = not self._idle
            connection = await self._connect() if is_new else self._idle.pop()
            try:
                connection.writer.write(head + body)
                await connection.writer.drain()
                response = await _read_response(connection.reader)
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                connection.writer.close()
                began = isinstance(error, asyncio.IncompleteReadError) and error.partial
                if is_new or began or method != "GET":
                    raise
                continue
            except BaseException:
                connection.writer.close()
                raise
            if response.headers.get("connection", "").lower() == "close":
                connection.writer.close()
            else:
                self._idle.append(connection)
            return response

    async def _connect(self) -> _Connection:
        name = self._name if self._secure else None
        reader, writer = await asyncio.open_connection(
            self._host, self._port, limit=_BUFFER_BYTES, ssl=self._secure or None, server_hostname=name
        )
        return _Connection(reader, writer)


async def _read_response(reader: StreamReader) -> Response:
    """Read a response.

    Raises:
        ValueError: it is malformed, or too long.
        EOFError: it is incomplete.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    if len(head) > HEAD_BYTES_MAX:
        raise ValueError("the head of the response is too long")
    first, *lines = head[:-4].split(b"\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise ValueError("the response is not HTTP")
    headers = {}
    for line in lines:
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    return Response(int(status[1]), headers, await _read_body(reader, int(status[1]), headers))


async def _read_body(reader: StreamReader, status: int, headers: Mapping[str, str]) -> bytes:
    if status in (204, 304):
        return b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        chunks, total = [], 0
        while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            total += size
            if not size > 0 or total > BODY_BYTES_MAX:
                raise ValueError("the response is too long")
            chunks.append((await reader.readexactly(size + 2))[:-2])
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
        return b"".join(chunks)
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= BODY_BYTES_MAX:
        raise ValueError("the response is too long")
    return await reader.readexactly(length)
