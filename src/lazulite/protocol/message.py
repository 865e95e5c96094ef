"""One request and one response, free of I/O: what the server hands to a service and gets back.

Bodies come and go in windows: a service need not hold all of one.

Invariants:
- Header names are lower case in a `Request`. `path` and `query` are exactly the characters that came over the wire,
  percent-encoding untouched, because signatures cover them.
- A service is given a request as soon as its head is complete, and accepts its body only once its credentials were
  found good. A body is read once, by `read` or by `chunks`; both accept it, which asks a client that waits for
  `100 Continue` to send.
- A response's content knows its length before its first byte, because the head states it.
"""

import sys
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.fault import Fault
from lazulite.protocol.refusal import Refusal

if TYPE_CHECKING:
    # It makes requests.
    from lazulite.protocol.template import TemplateSource, Watcher

WINDOW_BYTES = 256 * 1024
"""What is kept of a body that a service reads in chunks, beside one read of the socket."""

Window = bytes | bytearray
"""A piece of a response's content; its maker does not change it any more."""


class SubOperation(NamedTuple):
    """One operation of a request that has several, such as an entity group transaction."""

    operation: str
    resource: tuple[str, ...]
    """The names of what it changed, from the outermost: table, PartitionKey and RowKey."""
    etag: str
    """The ETag of what it wrote; "" if it deleted."""


@dataclass(slots=True)
class RequestRecord:
    """The facts of one request that the service learns while it responds.

    Invariant: each text is the service's own, or the name of an account that exists, but in `operations` and `parts`.
    """

    version: str = ""
    """The protocol version that governs the request; "" until it is resolved, or if the stated one is no version."""
    account: str = ""
    """The addressed account; "" if there is none of that name."""
    operation: str = ""
    """The operation's name; "" until the route is known."""
    query_class: str = ""
    """The class of an entity query."""
    rows_scanned: int = 0
    rows_returned: int = 0
    gate: str = ""
    """What refused or delayed the request, of `partitions.gate.Limit`; "" if nothing did."""
    gate_seconds: float = 0
    """How long it was delayed."""
    service: str = ""
    """The service that was addressed, such as `table`; "" for websites, and for what no service saw."""
    operations: Sequence[SubOperation] = ()
    """The operations of a change set that was applied, if the account has its writes logged."""
    parts: "Sequence[tuple[Request, Response]]" = ()
    """The requests that the request contained and what became of them, if the account has them logged or counted."""
    fault: Fault | None = None
    """What a rule has injected into the request; None: nothing."""
    refusal: Refusal | None = None
    """Why its credentials were refused, while requests are recorded; None: they were not, or it was not looked for."""


def pieces(data: bytes) -> Iterator[bytes]:
    """Yield bytes in pieces of at most `WINDOW_BYTES`; nothing for none."""
    if len(data) <= WINDOW_BYTES:
        if data:
            yield data
        return
    for start in range(0, len(data), WINDOW_BYTES):
        yield data[start : start + WINDOW_BYTES]


class RequestBody(Protocol):
    """The body of one request, not accepted yet."""

    @property
    def length(self) -> int | None:
        """The announced bytes; None when the body is chunked."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether all of it has come: then `read` need not wait for the client."""
        ...

    async def read(self, bytes_max: int) -> bytes:
        """Accept the body; return it when it is whole.

        Raises:
            ServiceError: `RequestBodyTooLarge`, it is longer than `bytes_max` or than the server holds of any;
                `OperationTimedOut`, it comes too slowly; `ServerBusy`, there is no memory for it.
            ClientDisconnectedError: it never became whole.
        """
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Accept the body; yield it as it comes, in pieces of at most `WINDOW_BYTES` that are not empty.

        While a piece is worked on, at most a window of others is read: then the client has to wait.

        Raises:
            ServiceError: `OperationTimedOut`, it comes too slowly; `ServerBusy`, there is no memory for a window.
            ClientDisconnectedError: it never became whole. What was yielded is to be discarded.
        """
        ...


class ResponseContent(Protocol):
    """The body of one response, made while it is sent."""

    @property
    def length(self) -> int:
        """Its bytes."""
        ...

    @property
    def held_bytes(self) -> int:
        """The memory of what is made of it already; 0: each window is made when it is asked for."""
        ...

    def chunks(self) -> AsyncIterator[Window]:
        """Yield it, in pieces of at most `WINDOW_BYTES`. The next one is asked for when the client takes them.

        An exception, or another number of bytes than `length`, ends the connection: the client sees that content is
        missing.
        """
        ...

    async def aclose(self) -> None:
        """Release what it holds; called once, also when nothing or not all of it was sent."""
        ...


class ClientDisconnectedError(Exception):
    """The client has gone before its request was whole, so there is nothing to do and no answer to give."""


@dataclass(slots=True)
class Request:
    """One HTTP request. Its repr shows no secret.

    `body` is whole unless there is a `body_to_come`: see `receive_body`. `authenticated`: it has credentials, found
    good. `record`: the facts for logs, which the service fills in as it learns them. `repeat`: makes a template for
    further requests like this one (`protocol.template`); None: there can be none. `watchers`: of such a template.
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
    repeat: "TemplateSource | None" = field(default=None, repr=False)
    watchers: "tuple[Watcher, ...]" = field(default=(), repr=False)

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


EventualResponse: TypeAlias = Response | Coroutine[object, None, Response]
"""A response that is ready, or one that has to be awaited."""


class Service(Protocol):
    """What a server serves."""

    def respond(self, request: Request) -> EventualResponse:
        """Respond to a request: at once, unless the response has to wait for something. One with `content` has to.

        A client whose request gets its response before the service accepts the body need not send all of it.

        Raises:
            ClientDisconnectedError: of `Request.receive_body`, when the response is awaited. Nothing else but
                cancellation.
        """
        ...

    def reject(self, request: Request, error: ServiceError) -> Response:
        """Return the response to a request that the server itself rejects, such as one with a malformed head.

        Args:
            request: as far as it is known; its headers may be empty.
            error: the finding of the server.
        """
        ...


async def response_of(service: Service, request: Request) -> Response:
    """Return the response of a service to a request, awaited if it has to be. Raises as `Service.respond`."""
    response = service.respond(request)
    return response if isinstance(response, Response) else await response
