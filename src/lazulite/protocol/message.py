"""One request and one response, free of I/O: what the server hands to a service and gets back.

Invariants: header names are lower case in a `Request`; `path` and `query` are exactly the characters that came over the
wire, percent-encoding untouched, because signatures cover them. A service is given a request as soon as its head is
complete, and accepts its body only once its credentials were found good.
"""

import sys
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from lazulite.protocol.body import RequestBody, ResponseContent
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.record import RequestRecord


class ClientDisconnectedError(Exception):
    """The client has gone before its request was whole, so there is nothing to do and no answer to give."""


class FoundRow(NamedTuple):
    """A row that was read."""

    value: bytes
    seconds: float
    """The time that reading it took."""


@dataclass(slots=True)
class Request:
    """One HTTP request. Its repr shows no secret.

    `body` is whole unless there is a `body_to_come`: see `receive_body`. `authenticated`: it has credentials, found
    good. `record`: the facts for logs, which the service fills in as it learns them. `plan` and `found`: what
    `Service.at_once` has found out and read for `handle`.
    """

    method: str
    path: str
    query: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    scheme: str = "http"
    client: str = ""
    id: str = ""
    body_to_come: RequestBody | None = field(default=None, repr=False)
    authenticated: bool = False
    record: RequestRecord = field(default_factory=RequestRecord, repr=False)
    plan: object = field(default=None, repr=False)
    found: FoundRow | None = field(default=None, repr=False)

    async def receive_body(self, bytes_max: int = sys.maxsize) -> None:
        """Accept the rest of the body; return when it is whole. Raises as `RequestBody.read`."""
        if self.body_to_come is not None:
            coming, self.body_to_come = self.body_to_come, None
            self.body = await coming.read(bytes_max)


@dataclass(slots=True)
class Response:
    """One HTTP response. `headers` are in wire order, without Content-Length and Connection, which the server adds.

    `reason` is the reason phrase, of which the server sends one short line; "" for the standard one of the status.
    `content` is sent instead of `body` where it is given. `opening` has fields that stand before `headers`, ready for
    the wire: lines that each end in CRLF, made of constants, stored text and checked values only.
    """

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    error_code: str = ""
    reason: str = ""
    content: ResponseContent | None = None
    opening: str = ""

    def fields(self) -> list[tuple[str, str]]:
        """Return all header fields in wire order: those of the opening, then `headers`."""
        if not self.opening:
            return self.headers
        lines = self.opening.removesuffix("\r\n").split("\r\n")
        return [*((name, value) for name, _, value in (line.partition(": ") for line in lines)), *self.headers]


class Service(Protocol):
    """What a server serves."""

    def handle(self, request: Request) -> Coroutine[object, object, Response]:
        """Respond to a request. Raises only cancellation, and `ClientDisconnectedError` of `Request.receive_body`.

        A client whose request gets its response before the service accepts the body need not send all of it.
        """
        ...

    def at_once(self, request: Request) -> Response | None:
        """Respond to a request without waiting for anything; return None if `handle` has to respond.

        A server calls it before `handle`, which may use what it has found out. Raises nothing.
        """
        ...

    def reject(self, request: Request, error: ServiceError) -> Response:
        """Return the response to a request that the server itself rejects, such as one with a malformed head.

        Args:
            request: as far as it is known; its headers may be empty.
            error: the finding of the server.
        """
        ...
