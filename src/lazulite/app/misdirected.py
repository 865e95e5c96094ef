"""Clients at the wrong port: HTTPS at a port for HTTP, or a client of another service. A line in the log names them.

Invariant: a process prints at most `LINES_MAX` such lines, so no stranger fills the log.
"""

import re
from collections.abc import Callable
from ipaddress import ip_address

from lazulite.protocol.errors import ServiceError, TlsOnPlainPortError
from lazulite.protocol.message import Request
from lazulite.settings.addresses import BLOB, TABLE

LINES_MAX = 16
_SDK = re.compile(r"azsdk-[\w.-]*?(blob|queue|table)", re.IGNORECASE)
"""The user agent of an SDK, such as `azsdk-python-storage-blob/12.31.1`; the group is its service."""
_AGENT_CHARACTERS_MAX = 512
_OWN_FIELDS = {"x-ms-blob-type": BLOB, "dataserviceversion": TABLE, "maxdataserviceversion": TABLE}
"""Header that clients of one service alone send -> that service."""


class MisdirectedClients:
    """Reports clients that a service rejects because they are meant for another port.

    Args:
        service: the service of the port.
        report: takes a line for people.
    """

    def __init__(self, service: str, report: Callable[[str], None]) -> None:
        self._service = service
        self._report = report
        self._reported: set[str] = set()

    def note(self, request: Request, error: ServiceError) -> None:
        """Report the client of a rejected request once, if it is at the wrong port."""
        if len(self._reported) == LINES_MAX:
            return
        mistake = self._mistake(request, error)
        if not mistake:
            return
        line = f"a client{_from(request.client)} {mistake}"
        if line not in self._reported:
            self._reported.add(line)
            self._report(line)

    def _mistake(self, request: Request, error: ServiceError) -> str:
        if isinstance(error, TlsOnPlainPortError):
            return (
                f"speaks HTTPS at the port of {self._service}s for HTTP: "
                "write http:// in its endpoint, or serve HTTPS (--cert)"
            )
        meant = service_of(request)
        if meant in ("", self._service):
            return ""
        return (
            f"of {meant}s is at the port of {self._service}s: check its {meant.title()}Endpoint, "
            f"or the port of {meant}s (--{meant}-port)"
        )


def service_of(request: Request) -> str:
    """Return the service that a client is meant for, by what it tells of itself; "" if that is unknown."""
    sdk = _SDK.search(request.headers.get("user-agent", "")[:_AGENT_CHARACTERS_MAX])
    if sdk is not None:
        return sdk[1].lower()
    return next((service for name, service in _OWN_FIELDS.items() if name in request.headers), "")


def _from(client: str) -> str:
    """Return where a client is; "" for a text that is no address, as a proxy may pass on any."""
    try:
        return f" ({ip_address(client)})"
    except ValueError:
        return ""
