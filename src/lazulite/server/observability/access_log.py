"""The request log: one line of JSON for each request.

Invariants: a line never holds a query string, a header, a signature or a byte of a body; any text a client sends comes
out as valid JSON on one line.
"""

import json
import time
import traceback
from collections.abc import Callable

from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS, Clock, system_clock
from lazulite.protocol.fault import Fault
from lazulite.server.observability.exchange import Exchange, RepeatedExchange
from lazulite.server.observability.line_writer import LineWriter, Output

LINES_MAX = 100_000
"""Lines that may wait for a slow file."""

_FRAMES_MAX = 20

_quote = json.encoder.encode_basestring_ascii


class RequestLog:
    """Writes exchanges as JSON lines. See `ExchangeLog`.

    Args:
        output: a binary file, standard error as a rule.
        clock: ticks.
    """

    reads_heads = False

    def __init__(self, output: Output, clock: Clock = system_clock, lines_max: int = LINES_MAX) -> None:
        self._clock = clock
        self._writer = LineWriter(output, lines_max, self._dropped)

    def record(self, exchange: Exchange) -> None:
        """Note an answered request."""
        request, response = exchange.request, exchange.response
        record = request.record
        # Spelled out, because it runs for every request and a dictionary through the encoder costs three times as much.
        self._writer.write(
            f'{{"time":"{timestamp(self._clock)}","id":{_quote(request.id)},"account":{_quote(record.account)},'
            f'"operation":{_quote(record.operation)},"method":{_quote(request.method)},"status":{response.status},'
            f'"error":{_quote(response.error_code)},"ms":{exchange.elapsed_ms:.3f},"scanned":{record.rows_scanned},'
            f'"returned":{record.rows_returned},"class":{_quote(record.query_class)},"gate":"{record.gate}","bytes_in":{exchange.bytes_in},'
            f'"bytes_out":{exchange.bytes_out},"client":{_quote(request.client)}{_fault(record.fault)}}}'
        )

    def repeat(self, exchange: RepeatedExchange) -> None:
        """Note a request that a template has answered."""
        self.record(exchange.exchange)

    def failed(self, request_id: str, failure: BaseException) -> None:
        """Note where an exception came from; not its text, which may quote what a client sent."""
        kind, at = type(failure).__name__, frames(failure)
        self._writer.write(json.dumps({"time": timestamp(self._clock), "id": request_id, "failure": kind, "at": at}))

    def close(self) -> None:
        """Write what waits."""
        self._writer.close()

    def _dropped(self, count: int) -> str:
        return json.dumps({"time": timestamp(self._clock), "dropped": count})


def _fault(fault: Fault | None) -> str:
    return "" if fault is None else f',"fault":"{fault.rule}","effect":"{fault.effect}"'


def timestamp(clock: Clock) -> str:
    """Return the time as `2026-11-20T14:18:49.123Z`."""
    seconds, ticks = divmod(clock() - UNIX_EPOCH_TICKS, TICKS_PER_SECOND)
    return f"{_second(seconds)}.{ticks * 1000 // TICKS_PER_SECOND:03d}Z"


def frames(failure: BaseException) -> list[str]:
    """Return where an exception passed, innermost last, as `module file:line function`."""
    found = traceback.extract_tb(failure.__traceback__)[-_FRAMES_MAX:]
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in found]


def _cache_last() -> Callable[[int], str]:
    known, text = -1, ""

    def second(unix: int) -> str:
        nonlocal known, text
        if unix != known:
            known, text = unix, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(unix))
        return text

    return second


_second = _cache_last()
