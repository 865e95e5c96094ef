"""One request and one response, free of I/O: what the server hands to a service and gets back.

Invariants: header names are lower case in a `Request`; `path` and `query` are exactly the characters that came over the
wire, percent-encoding untouched, because signatures cover them. A `Response` knows its whole body.
"""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lazulite.protocol.errors import ServiceError


@dataclass(slots=True)
class Request:
    """One HTTP request, whole. Its repr shows no secret.

    The last fields are what the answer's head and the log tell; the service fills them in as it learns them.
    """

    method: str
    path: str
    query: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    scheme: str = "http"
    client: str = ""
    id: str = ""

    version: str = ""
    account: str = ""
    operation: str = ""
    query_class: str = ""
    rows_scanned: int = 0
    rows_returned: int = 0


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
        """Answer a request; never raises but for cancellation."""
        ...

    def refuse(self, request: Request, error: ServiceError) -> Response:
        """Spell an error that the server itself found (a body too large, a malformed head) as the service does.

        `request` holds what is known of it; its headers may be empty.
        """
        ...
