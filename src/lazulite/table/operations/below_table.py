"""An address of the account behind a table's name: `/T/Tables`, `/T/$batch`.

An endpoint that ends with a table's name leads there, which is a frequent mistake: SDKs recognise the service's answers
and explain it. A `POST` is answered as an insert into T of an entity without keys. Invariant: nothing is ever written.

Source: reference §1; that a query is `NotImplemented` is what tests of the Python SDK expect, and *unverified* where
T does not exist.
"""

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.table.call import Call
from lazulite.table.operations.entity_queries import READ
from lazulite.table.operations.write_decisions import INSERT


async def refuse_insert(call: Call) -> Response:
    """Refuse a `POST`.

    Raises:
        ServiceError: 403; 415, as for a `$batch`; `TableNotFound`; `PropertiesNeedValue`.
    """
    call.authorize(INSERT.requirement)
    call.reader()
    await call.context.catalog.require(call.account, call.resource.table)
    raise ServiceError("PropertiesNeedValue")


async def refuse_query(call: Call) -> Response:
    """Refuse a `GET`.

    Raises:
        ServiceError: 403; `TableNotFound`; `NotImplemented`.
    """
    call.authorize(READ)
    await call.context.catalog.require(call.account, call.resource.table)
    raise ServiceError("NotImplemented")
