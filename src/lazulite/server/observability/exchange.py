"""Exchanges, and the interface of logs that record them."""

from dataclasses import replace
from typing import NamedTuple, Protocol

from lazulite.protocol.message import Request, Response
from lazulite.protocol.template import Answer, HeadValues, Template


class Exchange(NamedTuple):
    """One answered request. `elapsed_ms`: from the whole request's arrival at the service to the response's writing.

    A request that a template has answered has no path, query and headers. `bytes_out` are those of the response with
    its head, if the server writes that.
    """

    request: Request
    response: Response
    elapsed_ms: float
    bytes_in: int
    bytes_out: int
    head_bytes_out: int = 0
    """The bytes of the head of the response, which `bytes_out` counts, too."""
    total_ms: float = 0.0
    """From the arrival of the request's head to the last write of the response."""
    is_whole: bool = True
    """Whether the response was written to its end, while the client was there."""


class RepeatedExchange:
    """One request that a template has answered, as the template knows it. Made for each, so with little.

    Args:
        template: has answered.
        values: of the head of the request.
        answer: what was answered.
        sizes: the bytes of the request's head and body, and of the response's head and body.
        request_id: of the request.
        client: its address.
        elapsed_ms: from its arrival to the response's writing.
        ended_s: when that was, by the server's clock.
    """

    __slots__ = (
        "_exchange",
        "client",
        "elapsed_ms",
        "ended_s",
        "opening",
        "request_id",
        "rows",
        "sizes",
        "status",
        "template",
        "values",
    )

    def __init__(
        self,
        template: Template,
        values: HeadValues,
        answer: Answer,
        sizes: tuple[int, int, int, int],
        request_id: str,
        client: str,
        elapsed_ms: float,
        ended_s: float,
    ) -> None:
        self.template = template
        self.values = values
        self.status, self.opening, _, self.rows = answer
        self.sizes = sizes
        self.request_id = request_id
        self.client = client
        self.elapsed_ms = elapsed_ms
        self.ended_s = ended_s
        self._exchange: Exchange | None = None

    @property
    def exchange(self) -> Exchange:
        """It as other exchanges are, but without path, query and headers."""
        if self._exchange is None:
            record, rows = self.template.record, self.rows
            if rows is not None and not rows == record.rows_scanned == record.rows_returned:
                record = replace(record, rows_scanned=rows, rows_returned=rows)
            request = Request(self.template.method, "", client=self.client, id=self.request_id, record=record)
            _, bytes_in, head_bytes_out, body_bytes_out = self.sizes
            response, elapsed_ms = Response(self.status, opening=self.opening), self.elapsed_ms
            bytes_out = head_bytes_out + body_bytes_out
            self._exchange = Exchange(request, response, elapsed_ms, bytes_in, bytes_out, head_bytes_out, elapsed_ms)
        return self._exchange


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

    def repeat(self, exchange: RepeatedExchange) -> None:
        """Note a request that a template has answered, in place of `record`."""
        ...

    def failed(self, request_id: str, failure: BaseException) -> None:
        """Note an exception that a service should not have let out."""
        ...
