"""The body of a request under ASGI: bounded, and within the memory that all requests share; and the types of ASGI 3.

Invariants: nothing is received before the service asks for the body, which it does once the credentials are good. A
body that is announced as too large is not received at all. Memory for a body that is not small, or for a window of it,
is reserved before its first byte is received. While the client is waited for, its pace is judged as the native server
judges it, and the service's deadline stands still.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import cast

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import WINDOW_BYTES, ClientDisconnectedError, pieces
from lazulite.server.admission.budgets import SMALL_BODY_BYTES, BodyBudget
from lazulite.server.http.timeouts import TICK_SECONDS, BodyPace
from lazulite.server.limits import Limits

Message = MutableMapping[str, object]
"""A scope, or an event."""
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


_LENGTH_DIGITS_MAX = 18


class AsgiBody:
    """The body of one request; implements `RequestBody`.

    Args:
        receive: the ASGI server's.
        limits: bounds of the length and of the time.
        budget: the memory for bodies of all requests.

    Attributes:
        arrived_s: when its last part so far arrived, or else when the request did; monotonic seconds.
        deadline: of the service, moved while the body is waited for; None before and after the request.
        received_bytes: the length of what has arrived.
    """

    def __init__(self, receive: Receive, limits: Limits, budget: BodyBudget) -> None:
        self._receive = receive
        self._limits = limits
        self._budget = budget
        self._length: int | None = 0
        self._reserved_bytes = 0
        self._pace = BodyPace(limits)
        self.arrived_s = time.monotonic()
        self.deadline: asyncio.Timeout | None = None
        self.received_bytes = 0

    @property
    def length(self) -> int | None:
        """The announced bytes; None when the body is chunked."""
        return self._length

    @property
    def is_whole(self) -> bool:
        """See `RequestBody`: the server does not tell it."""
        return False

    def announce(self, headers: Mapping[str, str], http_version: str) -> None:
        """Note the length that a head announces."""
        length = headers.get("content-length", "")
        if length.isdecimal():
            self._length = int(length[:_LENGTH_DIGITS_MAX])
        elif "transfer-encoding" in headers or not http_version.startswith("1"):
            self._length = None

    async def read(self, bytes_max: int) -> bytes:
        """See `RequestBody`."""
        bytes_max = min(bytes_max, self._limits.body_bytes)
        if (self._length or 0) > bytes_max:
            raise ServiceError("RequestBodyTooLarge")
        await self._reserve(bytes_max if self._length is None else self._length)
        parts: list[bytes] = []
        async for part in self._parts():
            if self.received_bytes > bytes_max:
                raise ServiceError("RequestBodyTooLarge")
            parts.append(part)
        body = b"".join(parts)
        self._budget.release(self._reserved_bytes - len(body))
        self._reserved_bytes = len(body)
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `RequestBody`."""
        await self._reserve(WINDOW_BYTES if self._length is None else min(self._length, WINDOW_BYTES))
        async for part in self._parts():
            for piece in pieces(part):
                yield piece

    def release(self) -> None:
        """Give the memory back: the body is not looked at any more."""
        self._budget.release(self._reserved_bytes)
        self._reserved_bytes = 0

    async def _reserve(self, count: int) -> None:
        if count <= SMALL_BODY_BYTES:
            self._budget.take(count)
        else:
            try:
                await self._budget.reserve(
                    count, self._limits.request_seconds, asyncio.get_running_loop().create_future
                )
            except TimeoutError:
                raise ServiceError("ServerBusy") from None
        self._reserved_bytes = count

    async def _parts(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._next()
            if message["type"] == "http.disconnect":
                raise ClientDisconnectedError
            part = cast(bytes, message.get("body", b""))
            self.received_bytes += len(part)
            more = bool(message.get("more_body", False))
            yield part

    async def _next(self) -> Message:
        """Return the next message.

        Raises:
            ServiceError: `OperationTimedOut`, the client sends too slowly.
        """
        coming = asyncio.ensure_future(self._receive())
        self._pace.await_more(time.monotonic())
        self._move_deadline(None)
        try:
            while True:
                seconds = min(TICK_SECONDS, self._limits.body_stall_seconds)
                done, _ = await asyncio.wait([coming], timeout=seconds)
                self.arrived_s = time.monotonic()
                if done:
                    return coming.result()
                crowded = self._budget.is_crowded
                if self._pace.is_too_slow(self.received_bytes, self.arrived_s, crowded=crowded):
                    raise ServiceError("OperationTimedOut", status=408)
        finally:
            coming.cancel()
            self._pace.end_wait(self.arrived_s)
            self._move_deadline(self._limits.request_seconds)

    def _move_deadline(self, seconds: float | None) -> None:
        if self.deadline is not None and not self.deadline.expired():
            self.deadline.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)
