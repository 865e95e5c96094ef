"""The debug log: what came and what went, heads only, without secrets.

Invariant: no body is ever in it. Of queries and fields it has what `redaction` shows.
"""

from collections.abc import Iterable

from lazulite.protocol.clock import Clock, system_clock
from lazulite.server.observability.access_log import frames, timestamp
from lazulite.server.observability.exchange import Exchange, RepeatedExchange
from lazulite.server.observability.line_writer import LineWriter, Output
from lazulite.server.observability.redaction import CONTROLS, redact, shown_field, shown_query

LINES_MAX = 20_000
"""Exchanges that may wait for a slow file."""


class DebugLog:
    """Writes heads of exchanges as text. See `ExchangeLog`."""

    reads_heads = True

    def __init__(self, output: Output, clock: Clock = system_clock, lines_max: int = LINES_MAX) -> None:
        self._clock = clock
        self._writer = LineWriter(output, lines_max, lambda count: f"{count} entries dropped")

    def record(self, exchange: Exchange) -> None:
        """Note both heads of an answered request."""
        request, response = exchange.request, exchange.response
        lines = [f"{timestamp(self._clock)} {request.id} {request.client} {exchange.elapsed_ms:.3f} ms"]
        lines.append(
            f"> {request.method} {redact(request.path)}{shown_query(request.query)} ({exchange.bytes_in} bytes)"
        )
        lines += _fields(">", request.headers.items())
        lines.append(f"< {response.status} {response.error_code} ({exchange.bytes_out} bytes)")
        lines += _fields("<", response.fields())
        if request.record.fault is not None:
            lines.append(f"! fault {request.record.fault.rule}: {request.record.fault.effect}")
        self._writer.write("\n".join(line.translate(CONTROLS) for line in lines))

    def repeat(self, exchange: RepeatedExchange) -> None:
        """Note a request that a template has answered."""
        self.record(exchange.exchange)

    def failed(self, request_id: str, failure: BaseException) -> None:
        """Note where an exception came from."""
        where = "".join(f"\n! {frame}" for frame in frames(failure))
        self._writer.write(f"{timestamp(self._clock)} {request_id} {type(failure).__name__}{where}")

    def close(self) -> None:
        """Write what waits."""
        self._writer.close()


def _fields(mark: str, fields: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{mark} {name}: {shown_field(name.lower(), text)}" for name, text in fields]
