"""Exchanges, and the interface of logs that record them."""

from typing import NamedTuple, Protocol

from lazulite.protocol.message import Request, Response
from lazulite.protocol.template import HeadValues, Template


class Exchange(NamedTuple):
    """One answered request. `elapsed_ms`: from the whole request's arrival at the service to the response's writing.

    A request that a template has answered has no path, query and headers: its template and `values` have them.
    `bytes_out` are those of the response with its head, if the server writes that.
    """

    request: Request
    response: Response
    elapsed_ms: float
    bytes_in: int
    bytes_out: int
    template: Template | None = None
    """What has answered the request; None: the service has."""
    values: HeadValues = ()
    """Of the head of the request, for the template."""
    head_bytes_in: int = 0
    """The bytes of that head; 0 without a template."""
    head_bytes_out: int = 0
    """The bytes of the head of the response, which `bytes_out` counts, too."""
    total_ms: float = 0.0
    """From the arrival of the request's head to the last write of the response."""
    is_whole: bool = True
    """Whether the response was written to its end, while the client was there."""


class ExchangeLog(Protocol):
    """Records exchanges; fast, never blocks, never raises."""

    @property
    def reads_heads(self) -> bool:
        """Whether it reads the path, the query or the headers of a request, or the fields of a response.

        If no log does, templates answer requests, whose exchanges lack these.
        """
        ...

    def record(self, exchange: Exchange) -> None:
        """Note an answered request."""
        ...

    def failed(self, request_id: str, failure: BaseException) -> None:
        """Note an exception that a service should not have let out."""
        ...
