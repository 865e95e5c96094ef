"""A kept-alive HTTP connection: bytes of a request, and the answer to it."""

import asyncio
from typing import NamedTuple, cast

import httptools


class Answer(NamedTuple):
    """A response."""

    status: int
    etag: str
    body: bytes


class UnavailableError(Exception):
    """The server cannot say: what was asked for may be done or not."""


class Connection(asyncio.Protocol):
    """One kept-alive connection, one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._reset()

    async def exchange(self, request: bytes) -> Answer:
        """Send a request and return the answer.

        Raises:
            ConnectionError: the connection ended before the answer did.
            UnavailableError: the answer is a 5xx.
        """
        if self._transport is None or self._transport.is_closing():
            raise ConnectionError
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        answer = await self._answer
        if answer.status >= 500:
            raise UnavailableError(answer)
        return answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._etag = ""
        self._body: list[bytes] = []

    # --- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError())

    # --- called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"etag":
            self._etag = value.decode()

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        answer = Answer(self._parser.get_status_code(), self._etag, b"".join(self._body))
        self._reset()
        assert self._answer is not None
        if not self._answer.done():
            self._answer.set_result(answer)
