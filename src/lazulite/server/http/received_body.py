"""The body of a request as its service sees it: memory is reserved, then it is read, whole or in windows.

Invariants: no byte beyond two slices of input is read before memory for it is reserved; what is reserved is given back
when the request ends (`ServerState.release`). A body that is complete or small does not wait for room.
"""

from collections.abc import AsyncIterator
from typing import Protocol

from lazulite.protocol.body import WINDOW_BYTES, pieces
from lazulite.protocol.errors import ServiceError
from lazulite.server.admission.body_budget import SMALL_BODY_BYTES
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.http.server_state import ServerState

_STREAMED_BYTES = 2 * WINDOW_BYTES
"""What is reserved for a body that is read in chunks: a window, and the read that fills it."""


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
        state: has the memory.
        reader: reads on.
    """

    __slots__ = ("_pending", "_reader", "_state")

    def __init__(self, pending: PendingRequest, state: ServerState, reader: Reader) -> None:
        self._pending = pending
        self._state = state
        self._reader = reader

    @property
    def length(self) -> int | None:
        """The announced bytes; None when the body is chunked."""
        return self._pending.length

    async def read(self, bytes_max: int) -> bytes:
        """See `RequestBody`."""
        pending, bodies = self._pending, self._state.bodies
        bytes_max = min(bytes_max, self._state.limits.body_bytes)
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
        self._state.bodies.take(pending.kept_bytes)
        pending.reserved_bytes, pending.accepted = pending.kept_bytes, True
        self._reader.on_body_accepted(pending)

    async def _reserve(self, reserved_bytes: int) -> int:
        """Return what was reserved: so many bytes, or those of a body that has become complete meanwhile."""
        pending, bodies = self._pending, self._state.bodies
        if reserved_bytes <= SMALL_BODY_BYTES:
            bodies.take(reserved_bytes)
            return reserved_bytes
        pending.waits_for_room = True
        try:
            admitted = await bodies.reserve(reserved_bytes, self._state.limits.request_seconds, pending.change)
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
