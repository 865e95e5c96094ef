"""The operations on a whole account: service properties and service stats. Source: reference §12.1, §12.2."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lazulite.auth.grant import Requirement, either
from lazulite.protocol.clock import format_http_date
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.protocol.version import STATS_SINCE
from lazulite.protocol.xml import document as xml
from lazulite.service.properties import ANALYTICS_VERSION, PropertiesUpdate
from lazulite.service.properties_xml import (
    NO_OWN_PARTS,
    ServiceElements,
    read_service_properties,
    write_service_properties,
)
from lazulite.service.responses import XML_TYPE
from lazulite.service.routing import XML_BODY, AnyCall, Route


def write_service_stats(last_sync: int) -> bytes:
    """Return the document of a secondary that is live.

    Args:
        last_sync: up to when the primary's writes are all there, in ticks; with one store behind both endpoints: now.
    """
    moment = format_http_date(last_sync)
    replication = xml.element("GeoReplication", xml.leaf("Status", "live"), xml.leaf("LastSyncTime", moment))
    return xml.document(xml.element("StorageServiceStats", replication))


_READ = Requirement("s", ("r",), actions=either("service/read"))
_WRITE = Requirement("s", ("w",), actions=either("service/write"))
_PROPERTIES, _STATS = "service/properties", "service/stats"

CallT = TypeVar("CallT", bound=AnyCall)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOperations(Generic[CallT]):
    """The operations for one service."""

    service: str
    """The service as the names of its operations have it: `Table`."""
    logging_versions: tuple[str, ...] = (ANALYTICS_VERSION,)
    """The versions of `Logging` that it has."""
    own_parts: ServiceElements = NO_OWN_PARTS
    """The parts of its properties that other services lack."""
    read_headers: tuple[tuple[str, str], ...] = (XML_TYPE,)
    """The headers of responses with content."""
    before_update: Callable[[CallT, PropertiesUpdate], Awaitable[None]] | None = None
    """Makes what an update of the properties needs."""

    def routes(self, kind: object) -> Sequence[Route[CallT]]:
        """Return the routes; `kind` is the kind of the account's root."""
        name = f"{self.service}Service"
        return (
            Route(kind, "GET", _PROPERTIES, f"Get{name}Properties", self._get_properties, requires=_READ),
            Route(
                kind, "PUT", _PROPERTIES, f"Set{name}Properties", self._set_properties, requires=_WRITE, body=XML_BODY
            ),
            Route(kind, "GET", _STATS, f"Get{name}Stats", self._get_stats, requires=_READ, since=STATS_SINCE),
        )

    async def _get_properties(self, call: CallT) -> Response:
        """Return logging, metrics, CORS rules, and the parts of the service's own."""
        properties = await call.context.properties.get(call.account)
        return Response(
            200, list(self.read_headers), write_service_properties(properties, call.version, self.own_parts)
        )

    async def _set_properties(self, call: CallT) -> Response:
        """Change the roots that the body has; the others stay."""
        update = read_service_properties(call.request.body, call.version, self.logging_versions, self.own_parts)
        if self.before_update is not None:
            await self.before_update(call, update)
        await call.context.properties.update(call.account, update)
        return Response(202)

    async def _get_stats(self, call: CallT) -> Response:
        """Return the replication status. Both endpoints read one store, so the secondary is never behind."""
        if not call.address.secondary:
            raise ServiceError("InvalidQueryParameterValue")
        return Response(200, list(self.read_headers), write_service_stats(call.context.clock()))
