"""What concerns a whole account: service properties and service stats. Source: reference §12.1, §12.2."""

from lazulite.auth.grant import Requirement
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.service.properties_xml import read_service_properties, write_service_properties
from lazulite.service.stats import write_service_stats
from lazulite.table.call import Call
from lazulite.table.operations.acl import XML_TYPE

READ = Requirement("s", ("r",))
WRITE = Requirement("s", ("w",))


async def get_properties(call: Call) -> Response:
    """Return logging, metrics and CORS rules."""
    call.authorize(READ)
    properties = await call.context.properties.get(call.account)
    return Response(200, [XML_TYPE], write_service_properties(properties, call.version))


async def set_properties(call: Call) -> Response:
    """Change the roots that the body has; the others stay."""
    call.authorize(WRITE)
    update = read_service_properties(call.request.body, call.version)
    await call.context.properties.update(call.account, update)
    return Response(202)


async def get_stats(call: Call) -> Response:
    """Return the replication status. Both endpoints read one store, so the secondary is never behind."""
    call.authorize(READ)
    if not call.address.secondary:
        raise ServiceError("InvalidQueryParameterValue")
    return Response(200, [XML_TYPE], write_service_stats(call.context.clock()))
