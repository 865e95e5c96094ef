"""The header fields that all responses of a service have: the server, the ids of the request, the version, the time."""

from email.utils import formatdate

from lazulite.protocol.clock import TICKS_PER_SECOND, unix_seconds
from lazulite.protocol.message import Request
from lazulite.protocol.version import VERSION_HEADER_SINCE

FRONT_DOOR = "Microsoft-HTTPAPI/2.0"
"""The `Server` of a rejection of credentials, as recorded (reference §3)."""
_CLIENT_ID_MAX = 1024


class CommonFields:
    """Makes the fields for one service.

    Args:
        server: the `Server` field.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._second = -1
        self._date = ""

    def lines(self, request_id: str, client_id: str | None, version: str, now: int) -> str:
        """Return the fields of a success as on the wire, each ended by CRLF.

        Args:
            request_id: the id of the request.
            client_id: the id that its client gave it.
            version: the version that governs the request.
            now: the time of the response, in ticks.
        """
        stated = f"x-ms-version: {version}\r\n" if version >= VERSION_HEADER_SINCE else ""
        echoed = "" if client_id is None or not _is_echoed(client_id) else f"x-ms-client-request-id: {client_id}\r\n"
        date = self._date if now // TICKS_PER_SECOND == self._second else self._date_of(now)
        return f"Server: {self._server}\r\nx-ms-request-id: {request_id}\r\n{stated}{echoed}Date: {date}\r\n"

    def pairs(self, request: Request, version: str, now: int, *, credentials_rejected: bool) -> list[tuple[str, str]]:
        """Return the same fields as pairs of name and value; a rejection of credentials names no service or version."""
        found = [("Server", FRONT_DOOR if credentials_rejected else self._server), ("x-ms-request-id", request.id)]
        if version >= VERSION_HEADER_SINCE and not credentials_rejected:
            found.append(("x-ms-version", version))
        client_id = request.headers.get("x-ms-client-request-id")
        if client_id is not None and _is_echoed(client_id):
            found.append(("x-ms-client-request-id", client_id))
        found.append(("Date", self._date_of(now)))
        return found

    def _date_of(self, now: int) -> str:
        second = now // TICKS_PER_SECOND
        if second != self._second:
            self._date = formatdate(unix_seconds(now), usegmt=True)
            self._second = second
        return self._date


def _is_echoed(client_id: str) -> bool:
    """Return whether an id may stand in a response: short, and printable ASCII, so that it cannot begin a line."""
    return len(client_id) <= _CLIENT_ID_MAX and client_id.isascii() and client_id.isprintable()
