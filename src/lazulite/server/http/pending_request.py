"""A request on its way in, from its head to the last byte of its body, and that body as the service sees it.

Invariants:
- What is kept of the body is bounded: by `bytes_max` where it is read whole, by `WINDOW_BYTES` and one slice of input
  where it is read in chunks; nothing is kept once it is discarded.
- No byte beyond two slices of input is read before memory for it is reserved. What is reserved is given back when the
  request ends (`release`). A body that is complete or small does not wait for room.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import WINDOW_BYTES, ClientDisconnectedError, Request, pieces
from lazulite.server.admission.budgets import SMALL_BODY_BYTES, BodyBudget
from lazulite.server.limits import Limits

FIELD_BYTES = 256
"""What Python needs for a header field beside its characters."""

FRAGMENT_BYTES = 256
"""Shorter parts of a body are joined as they come: an object for each would take a multiple of their bytes."""

_STREAMED_BYTES = 2 * WINDOW_BYTES
"""What is reserved for a body that is read in chunks: a window, and the read that fills it."""


class PendingRequest:
    """One request of a connection.

    Args:
        request: its head; the body comes.
        keep_alive: another request may follow.
        bytes_max: of the body.
        length: the body's announced bytes, None when chunked.
        served: the head is good, so the service sees the request, and learns of an error in the body when it asks for
            that.

    `head`: its bytes, if it may have a template; with its body, if it has one. `complete`: the whole body has come.
    `arrived_s`, `started_s`: when its head was there, and when the service had all that it waited for; 0.0: not yet.
    `error`: what the server found wrong. `accepted`: the service has accepted the body, for which `reserved_bytes` of
    memory are reserved. `is_streamed`: it reads the body in chunks. `discards`: what comes of the body is dropped.
    """

    # Defaults are the class's: most requests need none but these few to be set, and each costs time.
    head = b""
    http_1_0 = False
    expects_continue = False
    error: ServiceError | None = None
    complete = False
    accepted = False
    is_streamed = False
    discards = False
    answered = False
    waits_for_room = False
    received_bytes = 0
    reserved_bytes = 0
    discarded_bytes = 0
    kept_bytes = 0
    arrived_s = started_s = 0.0
    _parts: Sequence[bytes | bytearray] = ()
    _head_bytes = 0
    _left = False
    _changed: "asyncio.Future[bool] | None" = None

    def __init__(
        self,
        request: Request,
        keep_alive: bool = True,
        bytes_max: int = 0,
        length: int | None = 0,
        *,
        served: bool = False,
    ) -> None:
        self.request = request
        self.keep_alive = keep_alive
        self.bytes_max = bytes_max
        self.length = length
        self.served = served

    @property
    def is_welcome(self) -> bool:
        """Whether the body may be held: the service has accepted it, or will, as the credentials are good."""
        return self.accepted or self.request.authenticated

    def is_held_back(self, bytes_max: int) -> bool:
        """Return whether so much of the body has come that no more is read before the service accepts it."""
        return not self.accepted and not self.discards and self.received_bytes >= bytes_max

    @property
    def is_full(self) -> bool:
        """Whether no more of the body may be read before the service has taken some."""
        return self.is_streamed and self.kept_bytes >= WINDOW_BYTES

    @property
    def head_bytes(self) -> int:
        """Memory that the head takes, roughly."""
        if not self._head_bytes:
            request = self.request
            fields = sum(len(name) + len(value) + FIELD_BYTES for name, value in request.headers.items())
            self._head_bytes = len(request.path) + len(request.query) + fields + len(self.head) + 1
        return self._head_bytes

    @property
    def unaccepted_bytes(self) -> int:
        """What has come of a body whose credentials have not been found good."""
        return 0 if self.is_welcome or self.discards else self.received_bytes

    def receive(self, part: bytes) -> None:
        """Keep a part of the body, or drop it."""
        count = len(part)
        self.received_bytes += count
        if self.discards:
            self.discarded_bytes += count
        elif self.received_bytes > self.bytes_max and not self.is_streamed:
            self.discarded_bytes += count
            self.reject(ServiceError("RequestBodyTooLarge"), close=False)
        else:
            self._keep(part, count)
            if self.is_streamed:
                self._wake()

    def _keep(self, part: bytes, count: int) -> None:
        self.kept_bytes += count
        parts = self._parts
        if not isinstance(parts, list):
            self._parts = [part]
            return
        if count >= FRAGMENT_BYTES:
            parts.append(part)
            return
        last = parts[-1]
        if isinstance(last, bytearray):
            last += part
        else:
            parts.append(bytearray(part))

    def take(self) -> bytes:
        """Return what is kept, and keep it no more."""
        parts, self._parts = self._parts, ()
        self.kept_bytes = 0
        return b"".join(parts)

    async def whole(self) -> bytes:
        """Return the body once it is complete. Raises as `more`."""
        while not self.complete:
            await self._next()
        if self.error is not None:
            raise self.error
        return self.take()

    async def more(self) -> bytes:
        """Return what has come since the last call, once there is something; b"" at the end.

        Raises:
            ServiceError: the request was rejected meanwhile.
            ClientDisconnectedError: the rest of the body will never come.
        """
        while not self._parts and not self.complete:
            await self._next()
        if self.error is not None:
            raise self.error
        return self.take()

    async def _next(self) -> None:
        if self.error is not None:
            raise self.error
        if self._left:
            raise ClientDisconnectedError
        await self.change()

    def change(self) -> "asyncio.Future[bool]":
        """Return a future that is False once there is more of the body, or it is rejected, or its client has gone."""
        self._changed = asyncio.get_running_loop().create_future()
        return self._changed

    def end(self) -> None:
        """Note that the body is complete."""
        self.complete = True
        if self._changed is not None:
            self._wake()

    def leave(self) -> None:
        """Note that nothing more comes; what has come of a body that is not complete can be let go of."""
        if not self.complete:
            self._left = True
            self.discard()
            self._wake()

    def discard(self) -> None:
        """Let go of the body, and keep none of what comes of it."""
        self.discards = True
        self.kept_bytes = 0
        self._parts = ()

    def release(self, bodies: BodyBudget) -> None:
        """Give back what was reserved for the body, which is not looked at any more."""
        if self.reserved_bytes:
            bodies.release(self.reserved_bytes)
            self.reserved_bytes = 0

    def reject(self, error: ServiceError, *, close: bool) -> None:
        """Note what is wrong with it; the first finding counts."""
        if self.error is None:
            self.error = error
            self.discard()
        if close:
            self.keep_alive = False
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(False)


class Reader(Protocol):
    """The connection that a body comes by."""

    def on_body_accepted(self, pending: PendingRequest) -> None:
        """Account for a body that is welcome from now on."""
        ...

    def on_body_awaited(self, pending: PendingRequest) -> None:
        """Read on: the service waits for more of the body."""
        ...

    def on_body_taken(self, pending: PendingRequest) -> None:
        """Read on, as there is room for more, while the service works on what it has taken."""
        ...


class ReceivedBody:
    """Implements `RequestBody`.

    Args:
        pending: the request.
        bodies: the memory.
        limits: the bounds.
        reader: reads on.
    """

    __slots__ = ("_bodies", "_limits", "_pending", "_reader")

    def __init__(self, pending: PendingRequest, bodies: BodyBudget, limits: Limits, reader: Reader) -> None:
        self._pending = pending
        self._bodies = bodies
        self._limits = limits
        self._reader = reader

    @property
    def length(self) -> int | None:
        """The announced bytes; None when the body is chunked."""
        return self._pending.length

    @property
    def is_whole(self) -> bool:
        """See `RequestBody`."""
        return self._pending.complete

    async def read(self, bytes_max: int) -> bytes:
        """See `RequestBody`."""
        pending, bodies = self._pending, self._bodies
        bytes_max = min(bytes_max, self._limits.body_bytes)
        least_bytes = pending.length or pending.received_bytes
        if least_bytes > bytes_max:
            raise ServiceError("RequestBodyTooLarge")
        pending.bytes_max = bytes_max
        if pending.complete and pending.error is None:
            self._accept_whole()
            return pending.take()
        await self._accept(bytes_max if pending.length is None else pending.length)
        body = await pending.whole()
        bodies.release(pending.reserved_bytes - len(body))
        pending.reserved_bytes = len(body)
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `RequestBody`."""
        pending = self._pending
        length = pending.length
        await self._accept(_STREAMED_BYTES if length is None else min(length, _STREAMED_BYTES), is_streamed=True)
        while True:
            if not pending.kept_bytes and not pending.complete and pending.error is None:
                self._reader.on_body_awaited(pending)
            chunk = await pending.more()
            if not chunk:
                return
            for piece in pieces(chunk):
                self._reader.on_body_taken(pending)
                yield piece

    async def _accept(self, reserved_bytes: int, *, is_streamed: bool = False) -> None:
        """Reserve memory, and read on.

        Raises:
            ServiceError: `ServerBusy`, there was no memory in time.
        """
        pending = self._pending
        if pending.complete:
            pending.is_streamed = is_streamed
            self._accept_whole()
            return
        self._reader.on_body_accepted(pending)
        pending.reserved_bytes = await self._reserve(reserved_bytes)
        pending.accepted, pending.is_streamed = True, is_streamed
        self._reader.on_body_accepted(pending)
        if not pending.complete and not is_streamed:
            self._reader.on_body_awaited(pending)

    def _accept_whole(self) -> None:
        """Account for a body that is complete and waits for nothing."""
        pending = self._pending
        self._bodies.take(pending.kept_bytes)
        pending.reserved_bytes, pending.accepted = pending.kept_bytes, True
        self._reader.on_body_accepted(pending)

    async def _reserve(self, reserved_bytes: int) -> int:
        """Return what was reserved: so many bytes, or those of a body that has become complete meanwhile."""
        pending, bodies = self._pending, self._bodies
        if reserved_bytes <= SMALL_BODY_BYTES:
            bodies.take(reserved_bytes)
            return reserved_bytes
        pending.waits_for_room = True
        try:
            admitted = await bodies.reserve(reserved_bytes, self._limits.request_seconds, pending.change)
        except TimeoutError:
            raise ServiceError("ServerBusy") from None
        finally:
            pending.waits_for_room = False
        if not admitted:  # It is whole by now, or never will be.
            if not pending.complete:
                await pending.whole()
            reserved_bytes = pending.kept_bytes
            bodies.take(reserved_bytes)
        return reserved_bytes
