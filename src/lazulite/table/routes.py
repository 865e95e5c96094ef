"""Which request is which operation: one table, read like the reference's own (§8, §9, §12).

The rows of entities are in `entity_routes`, as the parts of a batch are looked up there, too.
"""

from lazulite.auth.grant import Requirement, either
from lazulite.protocol.version import ACL_SINCE
from lazulite.service.account_operations import AccountOperations
from lazulite.service.routing import PAGE, XML_BODY, Route, Routes, component_of
from lazulite.table.batch.transaction import run_batch
from lazulite.table.call import Call
from lazulite.table.entity_routes import ADD, ENTITY_BODY, ENTITY_ROUTES, MAY_DELETE, READ
from lazulite.table.operations.tables import (
    create_table,
    delete_table,
    get_acl,
    get_table,
    query_tables,
    reject_insert,
    reject_key,
    reject_query,
    set_acl,
)
from lazulite.table.resource import Kind
from lazulite.table.versions import BATCH_SINCE, JSON_SINCE, check_odata_version

BATCH_BODY = 4 * 1024 * 1024
"""The most bytes of a batch (reference §11)."""

_LIST = Requirement("c", ("l",), actions=either("tables/read"))
_CREATE = Requirement("c", ("c", "w"), actions=either("tables/write"))
_DELETE = Requirement("c", ("d",), actions=either("tables/delete"))
_OWNER = Requirement("c", shared_key_only=True)

_ACCOUNT: AccountOperations[Call] = AccountOperations(service="Table")

ROUTES: Routes[Call] = Routes(
    *_ACCOUNT.routes(Kind.SERVICE),
    Route(Kind.TABLES, "GET", "", "QueryTables", query_tables, requires=_LIST, deadline=PAGE),
    Route(Kind.TABLES, "POST", "", "CreateTable", create_table, requires=_CREATE, body=ENTITY_BODY),
    Route(Kind.TABLE, "GET", "", "QueryTable", get_table, requires=_LIST),
    Route(Kind.TABLE, "DELETE", "", "DeleteTable", delete_table, requires=_DELETE),
    Route(Kind.ENTITIES, "GET", "acl", "GetTableAcl", get_acl, requires=_OWNER, since=ACL_SINCE),
    Route(Kind.ENTITIES, "HEAD", "acl", "GetTableAcl", get_acl, requires=_OWNER, since=ACL_SINCE),
    Route(Kind.ENTITIES, "PUT", "acl", "SetTableAcl", set_acl, requires=_OWNER, body=XML_BODY, since=ACL_SINCE),
    *ENTITY_ROUTES,
    Route(Kind.BELOW_TABLE, "POST", "", "InsertEntity", reject_insert, requires=ADD),
    Route(Kind.BELOW_TABLE, "GET", "", "QueryEntities", reject_query, requires=READ),
    Route(Kind.TABLE_BELOW_TABLE, "GET", "", "QueryEntity", reject_key, requires=READ),
    Route(Kind.TABLE_BELOW_TABLE, "DELETE", "", "DeleteEntity", reject_key, requires=MAY_DELETE),
    # Whether a batch changes anything, and the permissions that it needs, its body tells.
    Route(
        Kind.BATCH,
        "POST",
        "",
        "EntityGroupTransaction",
        run_batch,
        requires=None,
        body=BATCH_BODY,
        since=BATCH_SINCE,
        deadline=PAGE,
        changes=False,
        charges=True,
    ),
    verb_code="MethodNotAllowed",
)


def component(call: Call) -> str:
    """Return the component that a call addresses: `restype` names none but those of the account.

    Raises:
        ServiceError: the OData version that the request states is none of its protocol version.
    """
    parameters = call.parameters
    found = component_of(parameters) if call.resource.kind is Kind.SERVICE else parameters.get("comp", "").lower()
    if call.version < JSON_SINCE and not found:
        check_odata_version(call.version, call.request.headers, parameters)
    return found
