"""What concerns a whole account: service properties and service stats. Source: reference §12.1, §12.2."""

from typing import TypeAlias

from lazulite.auth.grant import Requirement
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.service.call import NamedResource, ServiceCall, ServiceContext
from lazulite.service.properties_xml import read_service_properties, write_service_properties
from lazulite.service.responses import XML_TYPE
from lazulite.service.stats import write_service_stats

AccountCall: TypeAlias = ServiceCall[ServiceContext, NamedResource]
"""A call of any service."""
READ = Requirement("s", ("r",))
WRITE = Requirement("s", ("w",))


async def get_properties(call: AccountCall) -> Response:
    """Return logging, metrics and CORS rules."""
    call.authorize(READ)
    properties = await call.context.properties.get(call.account)
    return Response(200, [XML_TYPE], write_service_properties(properties, call.version))


async def set_properties(call: AccountCall) -> Response:
    """Change the roots that the body has; the others stay."""
    call.authorize(WRITE)
    update = read_service_properties(call.request.body, call.version)
    await call.context.properties.update(call.account, update)
    return Response(202)


async def get_stats(call: AccountCall) -> Response:
    """Return the replication status. Both endpoints read one store, so the secondary is never behind."""
    call.authorize(READ)
    if not call.address.secondary:
        raise ServiceError("InvalidQueryParameterValue")
    return Response(200, [XML_TYPE], write_service_stats(call.context.clock()))
