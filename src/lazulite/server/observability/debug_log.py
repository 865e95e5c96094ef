"""The debug log: what came and what went, heads only, with the secrets taken out.

Invariant: no signature, no Authorization value and no body is ever in it.
"""

import re
from collections.abc import Iterable

from lazulite.protocol.clock import Clock, system_clock
from lazulite.server.observability.access_log import frames, timestamp
from lazulite.server.observability.exchange import Exchange
from lazulite.server.observability.line_writer import LineWriter, Output

LINES_MAX = 20_000
"""Exchanges that may wait for a slow file."""

_SIGNATURE = re.compile(
    r"((?:s|%(?:25)*[57]3)(?:i|%(?:25)*[46]9)(?:g|%(?:25)*[46]7)(?:\s|\+|%(?:25)*20)*(?:=|%(?:25)*3d))[^&]*",
    re.IGNORECASE,
)
"""`sig=` in any spelling that any number of percent-decodings leads to, wherever it is: query, Location, Referer."""

_CREDENTIALS = re.compile(r"(SharedKey(?:Lite)?\s+|Bearer\s+)\S.*", re.IGNORECASE)

_SECRET_FIELD = re.compile(r"authorization|cookie|token|api-?key|secret|password", re.IGNORECASE)
"""What the name of a field that holds a secret has in it."""

_REDACTED = "REDACTED"

_CONTROLS = {code: f"\\x{code:02x}" for code in [*range(32), 127, *range(128, 160), 0x2028, 0x2029]}


def redact(text: str) -> str:
    """Return the text without the signatures in it."""
    return _CREDENTIALS.sub(r"\1" + _REDACTED, _SIGNATURE.sub(r"\1" + _REDACTED, text))


class DebugLog:
    """Writes heads of exchanges as text. See `ExchangeLog`."""

    def __init__(self, output: Output, clock: Clock = system_clock, lines_max: int = LINES_MAX) -> None:
        self._clock = clock
        self._writer = LineWriter(output, lines_max, lambda count: f"{count} entries dropped")

    def record(self, exchange: Exchange) -> None:
        """Note both heads of an answered request."""
        request, response = exchange.request, exchange.response
        target = f"{request.path}?{request.query}" if request.query else request.path
        lines = [f"{timestamp(self._clock)} {request.id} {request.client} {exchange.elapsed_ms:.3f} ms"]
        lines.append(f"> {request.method} {redact(target)} ({exchange.bytes_in} bytes)")
        lines += _fields(">", request.headers.items())
        lines.append(f"< {response.status} {response.error_code} ({exchange.bytes_out} bytes)")
        lines += _fields("<", response.fields())
        self._writer.write("\n".join(line.translate(_CONTROLS) for line in lines))

    def failed(self, request_id: str, failure: BaseException) -> None:
        """Note where an exception came from."""
        where = "".join(f"\n! {frame}" for frame in frames(failure))
        self._writer.write(f"{timestamp(self._clock)} {request_id} {type(failure).__name__}{where}")

    def close(self) -> None:
        """Write what waits."""
        self._writer.close()


def _fields(mark: str, fields: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{mark} {name}: {_REDACTED if _SECRET_FIELD.search(name) else redact(value)}" for name, value in fields]
