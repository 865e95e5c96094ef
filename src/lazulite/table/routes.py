"""Which request is which operation: one table, read like the reference's own (§8, §9, §12).

Entity writes have their own table, as their kind depends on If-Match too: operations/entity_writes.py.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.protocol.version import ACL_SINCE, STATS_SINCE
from lazulite.service.account_operations import get_properties, get_stats, set_properties
from lazulite.table.batch.transaction import run_batch
from lazulite.table.call import Call
from lazulite.table.odata_version import check_odata_version
from lazulite.table.operations.acl import get_acl, set_acl
from lazulite.table.operations.below_table import refuse_insert, refuse_query
from lazulite.table.operations.entity_queries import get_entity, query_entities
from lazulite.table.operations.entity_writes import WRITE_NAMES, find_write, write_entity
from lazulite.table.operations.tables import create_table, delete_table, get_table, query_tables
from lazulite.table.operations.write_decisions import INSERT
from lazulite.table.resource import Kind
from lazulite.table.versions import BATCH_SINCE, JSON_SINCE


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, its name in logs, and the first version that has it."""

    name: str
    run: Callable[[Call], Coroutine[object, None, Response]]
    since: str = ""


_OPERATIONS: dict[tuple[Kind, str, str], Operation] = {
    (Kind.SERVICE, "properties", "GET"): Operation("GetTableServiceProperties", get_properties),
    (Kind.SERVICE, "properties", "PUT"): Operation("SetTableServiceProperties", set_properties),
    (Kind.SERVICE, "stats", "GET"): Operation("GetTableServiceStats", get_stats, STATS_SINCE),
    (Kind.TABLES, "", "GET"): Operation("QueryTables", query_tables),
    (Kind.TABLES, "", "POST"): Operation("CreateTable", create_table),
    (Kind.TABLE, "", "GET"): Operation("QueryTable", get_table),
    (Kind.TABLE, "", "DELETE"): Operation("DeleteTable", delete_table),
    (Kind.ENTITIES, "acl", "GET"): Operation("GetTableAcl", get_acl, ACL_SINCE),
    (Kind.ENTITIES, "acl", "HEAD"): Operation("GetTableAcl", get_acl, ACL_SINCE),
    (Kind.ENTITIES, "acl", "PUT"): Operation("SetTableAcl", set_acl, ACL_SINCE),
    (Kind.ENTITIES, "", "GET"): Operation("QueryEntities", query_entities),
    (Kind.ENTITY, "", "GET"): Operation("QueryEntity", get_entity),
    (Kind.BELOW_TABLE, "", "POST"): Operation(INSERT.operation, refuse_insert),
    (Kind.BELOW_TABLE, "", "GET"): Operation("QueryEntities", refuse_query),
    (Kind.BATCH, "", "POST"): Operation("EntityGroupTransaction", run_batch, BATCH_SINCE),
}
PREFLIGHT = "TablePreflightRequest"
OPERATION_NAMES = frozenset({*(operation.name for operation in _OPERATIONS.values()), *WRITE_NAMES, PREFLIGHT})
"""Everything that `Request.operation` can be called once the service has found out."""
_XML_COMPONENTS = frozenset({"acl", "properties", "stats"})
_READS = frozenset({"GET", "HEAD"})


def answers_xml(parameters: Mapping[str, str]) -> bool:
    """Tell whether a request belongs to the operations that speak XML, whose errors are XML too."""
    return parameters.get("comp", "").lower() in _XML_COMPONENTS


def dispatch(call: Call) -> Coroutine[object, None, Response]:
    """Return the operation that a call asks for, to be awaited.

    Raises:
        ServiceError: there is none for this method and resource; awaited, every refusal of the operation.
    """
    # Whether a batch writes, its body tells.
    if call.address.secondary and call.method not in _READS and call.resource.kind is not Kind.BATCH:
        raise ServiceError("InsufficientAccountPermissions")
    component = _component(call)
    if call.version < JSON_SINCE and not component:
        check_odata_version(call.version, call.request.headers, call.parameters)
    operation = _OPERATIONS.get((call.resource.kind, component, call.method))
    if operation is not None:
        if call.version < operation.since:
            # *Unverified*: before there was an operation, its address was none.
            raise ServiceError("InvalidQueryParameterValue" if component else "InvalidUri")
        call.request.operation = operation.name
        return operation.run(call)
    write = None if component else find_write(call)
    if write is None:
        raise ServiceError("MethodNotAllowed")
    return write_entity(call, write)


def _component(call: Call) -> str:
    kind = call.resource.kind
    component = call.parameters.get("comp", "").lower()
    if kind is Kind.SERVICE:
        restype = call.parameters.get("restype", "").lower()
        if not component and not restype:
            raise ServiceError("InvalidUri")
        if component not in ("properties", "stats") or restype != "service":
            raise ServiceError("InvalidQueryParameterValue")
    elif component and (kind is not Kind.ENTITIES or component != "acl"):
        raise ServiceError("InvalidQueryParameterValue")
    return component
