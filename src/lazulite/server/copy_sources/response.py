"""The response of another server, read as its body is taken.

Invariants: the head has at most `_OVERHEAD_BYTES_MAX` bytes, and as many may come between two pieces of the body. A
body tells where it ends: one that ends with the connection is rejected, as it may have been cut.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from lazulite.protocol.fields import join_values, lower_name
from lazulite.service.fetching import FetchFailedError

READ_BYTES = 64 * 1024
"""Of one read. A connection holds at most four of them."""
_OVERHEAD_BYTES_MAX = 64 * 1024


class _Message:
    """The first message of a connection; httptools calls the methods by these names."""

    def __init__(self) -> None:
        self.parser = HttpResponseParser(self)
        self.status = 0
        """0: the head has not come."""
        self.headers: dict[str, str] = {}
        self.pieces: deque[bytes] = deque()
        self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:
            return  # A trailer.
        field, text = lower_name(name.decode("latin-1")), value.decode("latin-1")
        before = self.headers.get(field)
        self.headers[field] = text if before is None else join_values(before, text)

    def on_headers_complete(self) -> None:
        self.status = self.status or self.parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        if not self.is_whole:
            self.pieces.append(data)

    def on_message_complete(self) -> None:
        self.is_whole = True


class StreamedResponse:
    """A response as it comes. See `FetchedResponse`.

    Args:
        reader: of the connection.
        stall_seconds: the time between two bytes.
        deadline: when the body must have come, on the loop's clock.
    """

    def __init__(self, reader: asyncio.StreamReader, stall_seconds: float, deadline: float) -> None:
        self._reader = reader
        self._stall_seconds = stall_seconds
        self._deadline = deadline
        self._message = _Message()
        self._overhead_bytes = 0

    @property
    def status(self) -> int:
        """The status."""
        return self._message.status

    @property
    def headers(self) -> dict[str, str]:
        """The header values, by name in lower case."""
        return self._message.headers

    async def read_head(self) -> None:
        """Receive the head. Raises `FetchFailedError`."""
        while not self._message.status:
            await self._read()
        coding = self.headers.get("transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            raise FetchFailedError("the body has an unknown transfer coding")
        if coding is None and "content-length" not in self.headers and not self._message.is_whole:
            raise FetchFailedError("the length of the body is not known")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes; no more is read than is taken. Raises `FetchFailedError`."""
        message = self._message
        while True:
            while message.pieces:
                yield message.pieces.popleft()
            if message.is_whole:
                return
            await self._read()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(min(loop.time() + self._stall_seconds, self._deadline)):
                data = await self._reader.read(READ_BYTES)
        except TimeoutError:
            raise FetchFailedError("the response is too slow") from None
        except OSError as error:
            raise FetchFailedError(str(error)) from None
        if not data:
            raise FetchFailedError("the response is incomplete")
        try:
            self._message.parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            raise FetchFailedError("the response is not HTTP/1.1") from None
        self._overhead_bytes = 0 if self._message.pieces else self._overhead_bytes + len(data)
        if self._overhead_bytes > _OVERHEAD_BYTES_MAX:
            raise FetchFailedError("the head is too large")
