"""A request on its way in, from its head to the last byte of its body.

Invariant: what is kept of the body is bounded: by `bytes_max` where it is read whole, by `WINDOW_BYTES` and one slice
of input where it is read in chunks; nothing is kept once it is discarded.
"""

import asyncio
from collections.abc import Sequence

from lazulite.protocol.body import WINDOW_BYTES
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import ClientDisconnectedError, Request

FIELD_BYTES = 256
"""What Python needs for a header field beside its characters."""

FRAGMENT_BYTES = 256
"""Shorter parts of a body are joined as they come: an object for each would take a multiple of their bytes."""


class PendingRequest:
    """One request of a connection.

    Args:
        request: its head; the body comes.
        keep_alive: another request may follow.
        bytes_max: of the body.
        length: the body's announced bytes, None when chunked.
        served: the head is good, so the service sees the request, and learns of an error in the body when it asks for
            that.

    `complete`: the whole body has come. `error`: what the server found wrong. `accepted`: the service has accepted the
    body, for which `reserved_bytes` of memory are reserved. `is_streamed`: it reads the body in chunks. `discards`:
    what comes of the body is dropped.
    """

    # Defaults are the class's: most requests need none but these few to be set, and each costs time.
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
    started_s = 0.0
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
            self._head_bytes = len(request.path) + len(request.query) + fields + 1
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
