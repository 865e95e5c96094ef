"""A request on its way in, from its head to the last byte of its body."""

from dataclasses import dataclass

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request


@dataclass(slots=True, eq=False)
class Incoming:
    """One request of a connection.

    `complete`: the whole body has come. `error`: what the server found wrong; answered as soon as it is this request's
    turn, complete or not. `keep_alive`: another request may follow. `length`: the body's announced bytes, None when
    chunked. `reserved_bytes`: of the server's room for bodies.
    """

    request: Request
    keep_alive: bool = True
    http_1_0: bool = False
    length: int | None = 0
    expects_continue: bool = False
    error: ServiceError | None = None
    complete: bool = False
    answered: bool = False
    received_bytes: int = 0
    reserved_bytes: int = 0
    started_s: float = 0.0

    def refuse(self, error: ServiceError, *, close: bool) -> None:
        """Note what is wrong with it; the first finding counts."""
        if self.error is None:
            self.error = error
            self.request.body = b""
        if close:
            self.keep_alive = False
