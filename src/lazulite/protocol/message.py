"""One request and one response, free of I/O: what the server hands to a service and gets back.

Invariants: header names are lower case in a `Request`; `path` and `query` are exactly the characters that came over the
wire, percent-encoding untouched, because signatures cover them. A `Response` knows its whole body. A service is given a
request as soon as its head is complete, and accepts its body only once its credentials were found good.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lazulite.protocol.errors import ServiceError


class ClientDisconnectedError(Exception):
    """The client has gone before its request was whole, so there is nothing to do and no answer to give."""


@dataclass(slots=True)
class Request:
    """One HTTP request. Its repr shows no secret.

    `body` is whole unless there is a `body_to_come`: see `receive_body`. `authenticated`: its credentials were found
    good. The last fields are what the answer's head and the log tell; the service fills them in as it learns them.
    """

    method: str
    path: str
    query: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    scheme: str = "http"
    client: str = ""
    id: str = ""
    body_to_come: Callable[[], Awaitable[bytes]] | None = field(default=None, repr=False)
    authenticated: bool = False

    version: str = ""
    account: str = ""
    operation: str = ""
    query_class: str = ""
    rows_scanned: int = 0
    rows_returned: int = 0

    async def receive_body(self) -> None:
        """Accept the rest of the body; return when it is whole.

        Raises:
            ServiceError: it is too large, too slow, or there is no memory for it.
            ClientDisconnectedError: it never became whole.
        """
        if self.body_to_come is not None:
            receive, self.body_to_come = self.body_to_come, None
            self.body = await receive()


@dataclass(slots=True)
class Response:
    """One HTTP response. `headers` are in wire order, without Content-Length and Connection, which the server adds.

    `reason` is the reason phrase, of which the server sends one short line; "" for the standard one of the status.
    """

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    error_code: str = ""
    reason: str = ""


class Service(Protocol):
    """What a server serves."""

    def handle(self, request: Request) -> Coroutine[object, object, Response]:
        """Answer a request; never raises but for cancellation, and what `Request.receive_body` has to say of a client.

        A request that is answered before it was asked for its body never has to send all of it.
        """
        ...

    def refuse(self, request: Request, error: ServiceError) -> Response:
        """Spell an error that the server itself found (a body too large, a malformed head) as the service does.

        `request` holds what is known of it; its headers may be empty.
        """
        ...
