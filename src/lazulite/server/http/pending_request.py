"""A request on its way in, from its head to the last byte of its body."""

import asyncio
from dataclasses import dataclass

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import ClientDisconnectedError, Request

FIELD_BYTES = 256
"""What Python needs for a header field beside its characters."""


@dataclass(slots=True, eq=False)
class Incoming:
    """One request of a connection.

    `complete`: the whole body has come. `error`: what the server found wrong. `served`: the head is good, so the
    service sees the request, and learns of an error in the body when it asks for that. `keep_alive`: another request
    may follow. `length`: the body's announced bytes, None when chunked. `accepted`: the service has accepted the body,
    for which `reserved_bytes` of memory are reserved. `discards`: what comes of the body is dropped.
    """

    request: Request
    keep_alive: bool = True
    http_1_0: bool = False
    length: int | None = 0
    expects_continue: bool = False
    error: ServiceError | None = None
    served: bool = False
    complete: bool = False
    accepted: bool = False
    discards: bool = False
    answered: bool = False
    received_bytes: int = 0
    reserved_bytes: int = 0
    started_s: float = 0.0
    _head_bytes: int = 0
    _left: bool = False
    _changed: "asyncio.Future[bool] | None" = None

    @property
    def is_welcome(self) -> bool:
        """Whether the body may be held: the service has accepted it, or will, as the credentials are good."""
        return self.accepted or self.request.authenticated

    @property
    def is_awaited(self) -> bool:
        """Whether the service has accepted the body and waits for the rest of it."""
        return self.accepted and not self.complete

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

    async def whole(self) -> bytes:
        """Return the body once it is complete.

        Raises:
            ServiceError: the request was refused meanwhile.
            ClientDisconnectedError: the rest of the body will never come.
        """
        while self.error is None and not self.complete and not self._left:
            await self.change()
        if self.error is not None:
            raise self.error
        if not self.complete:
            raise ClientDisconnectedError
        return self.request.body

    def change(self) -> "asyncio.Future[bool]":
        """Return a future that is False once the request is complete or refused, or its client has gone."""
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
            self._left = self.discards = True
            self._wake()

    def drop(self) -> None:
        """Let go of the body: the request is not carried out."""
        self.discards = True
        self.request.body = b""

    def refuse(self, error: ServiceError, *, close: bool) -> None:
        """Note what is wrong with it; the first finding counts."""
        if self.error is None:
            self.error = error
            self.drop()
        if close:
            self.keep_alive = False
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(False)
