"""A small client of the Table service: it signs, sends exactly the characters that it is given, and returns what came.

Invariants: a path and a query string reach the wire as written, percent-encoding untouched (so no URL library stands
in between); response headers keep their order; nothing is retried but a request on an idle connection that the peer
had closed.
"""

import http.client
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate

from .answers import Answer
from .signing import Endpoint, Signer, Unsigned, shared_key

VERSION = "2019-02-02"
MINIMAL = "application/json;odata=minimalmetadata"
FULL = "application/json;odata=fullmetadata"
NONE = "application/json;odata=nometadata"

HeaderChanges = Mapping[str, str | tuple[str, ...] | None]
"""Headers to add or replace by name; None takes one away, a tuple sends it several times."""


class Client:
    """One keep-alive connection to one endpoint.

    Args:
        endpoint: the endpoint.
        clock: the seconds since 1970 that requests are dated with.
    """

    def __init__(self, endpoint: Endpoint, clock: Callable[[], float] = time.time) -> None:
        self.endpoint = endpoint
        self._clock = clock
        kind = http.client.HTTPSConnection if endpoint.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(endpoint.host, timeout=60)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def send(
        self,
        method: str,
        path: str,
        query: str = "",
        *,
        headers: HeaderChanges | None = None,
        body: bytes | str | None = None,
        signer: Signer = shared_key,
        absolute: bool = False,
    ) -> Answer:
        """Send a request to `path` (below the account unless `absolute`) and return the answer."""
        target = path if absolute else self.endpoint.prefix + path
        content = body.encode() if isinstance(body, str) else body
        lines = self._headers(method, content, headers or {})
        unsigned = Unsigned(method, target, query, {name.lower(): value for name, value in lines})
        authorization = signer(self.endpoint, unsigned)
        if authorization is not None:
            lines.append(("Authorization", authorization))
        return self._exchange(method, f"{target}?{query}" if query else target, lines, content)

    def _headers(self, method: str, body: bytes | None, changes: HeaderChanges) -> list[tuple[str, str]]:
        defaults: dict[str, str | tuple[str, ...] | None] = {
            "Host": self.endpoint.host,
            "x-ms-date": formatdate(self._clock(), usegmt=True),
            "x-ms-version": VERSION,
            "DataServiceVersion": "3.0",
            "MaxDataServiceVersion": "3.0;NetFx",
            "Accept": MINIMAL,
        }
        if body is not None:
            defaults["Content-Type"] = "application/json"
        if body is not None or method in {"POST", "PUT", "PATCH", "MERGE", "DELETE"}:
            defaults["Content-Length"] = str(len(body or b""))
        names = {name.lower(): name for name in defaults}
        for name, value in changes.items():
            defaults[names.get(name.lower(), name)] = value
        lines: list[tuple[str, str]] = []
        for name, value in defaults.items():
            values = (value,) if isinstance(value, str) else value or ()
            lines.extend((name, each) for each in values)
        return lines

    def _exchange(self, method: str, target: str, lines: list[tuple[str, str]], body: bytes | None) -> Answer:
        reused = self._connection.sock is not None
        try:
            return self._exchange_once(method, target, lines, body)
        except (http.client.RemoteDisconnected, ConnectionError):
            self._connection.close()
            if not reused:
                raise
            return self._exchange_once(method, target, lines, body)

    def _exchange_once(self, method: str, target: str, lines: list[tuple[str, str]], body: bytes | None) -> Answer:
        connection = self._connection
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in lines:
            connection.putheader(name, value.encode())
        try:
            connection.endheaders(body)
        except (BrokenPipeError, ConnectionResetError):
            if not body:
                raise  # a body may be rejected before it was read; then the answer is already there
        response = connection.getresponse()
        content = response.read()
        request = f"{method} {target}"
        if response.will_close:
            connection.close()
        return Answer(request, response.status, response.reason, response.getheaders(), content)
