"""An address of the account behind a table's name: `/T/Tables`, `/T/Tables('U')`, `/T/$batch`.

An endpoint that ends with a table's name leads there, which is a frequent mistake: SDKs recognise the service's
responses and explain it. A `POST` has the response of an insert into T of an entity without keys. Invariant: nothing is
ever written.

Source: reference §1; that a query is `NotImplemented` is what tests of the Python SDK expect, and *unverified* where
T does not exist.
"""

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.table.call import Call
from lazulite.table.resource import wrong_key_count


async def reject_insert(call: Call) -> Response:
    """Reject a `POST`.

    Raises:
        ServiceError: 415, as for a `$batch`; `TableNotFound`; `PropertiesNeedValue`.
    """
    call.reader()
    await call.context.catalog.require_table(call.account, call.resource.table)
    raise ServiceError("PropertiesNeedValue")


async def reject_key(call: Call) -> Response:
    """Reject a request to one table behind the name of another, or of the same one.

    Raises:
        ServiceError: `TableNotFound`; `InvalidInput`, no entity has one key.
    """
    await call.context.catalog.require_table(call.account, call.resource.table)
    raise wrong_key_count(call.resource.table)


async def reject_query(call: Call) -> Response:
    """Reject a `GET`.

    Raises:
        ServiceError: `TableNotFound`; `NotImplemented`.
    """
    await call.context.catalog.require_table(call.account, call.resource.table)
    raise ServiceError("NotImplemented")
