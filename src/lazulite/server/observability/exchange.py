"""Exchanges, and the interface of logs that record them."""

from typing import NamedTuple, Protocol

from lazulite.protocol.message import Request, Response


class Exchange(NamedTuple):
    """One answered request. `elapsed_ms`: from the whole request's arrival at the service to the response's writing."""

    request: Request
    response: Response
    elapsed_ms: float
    bytes_in: int
    bytes_out: int


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
