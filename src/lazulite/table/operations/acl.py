"""Get and set a table's ACL: its stored access policies. Source: reference §8.5, §8.6. Only an account key may."""

from lazulite.protocol.message import Response
from lazulite.service.responses import XML_TYPE
from lazulite.service.signed_identifiers import read_signed_identifiers, write_signed_identifiers
from lazulite.table.call import Call


async def get_acl(call: Call) -> Response:
    """Return the stored access policies of a table."""
    table = await call.context.catalog.require(call.account, call.resource.table)
    return Response(200, [XML_TYPE], write_signed_identifiers(table.policies))


async def set_acl(call: Call) -> Response:
    """Replace the stored access policies of a table; they hold from the next request on."""
    policies = read_signed_identifiers(call.request.body)
    await call.context.catalog.set_policies(call.account, call.resource.table, policies)
    return Response(204)
