"""The Table service: its definition, for the kernel that all services share, its rejections, and its space of tables.

A rejection is in the negotiated format of OData, or in XML. Source: reference §16.

The registry has the space of the tables, by which `lazulite check` and copies read it and the tables' own spaces. An
entity's row is, byte for byte, the one that `row.assemble` makes of its keys, Timestamp and properties. All its values
are of their types. Its Timestamp is not above the greatest timestamp that the store ever gave.
"""

import json
import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote_to_bytes

from lazulite.engine.contract import Key
from lazulite.partitions.rounds import ROUNDS_SPACE
from lazulite.partitions.stored_maps import MAPS_SPACE
from lazulite.protocol.errors import CREDENTIAL_REJECTIONS
from lazulite.protocol.message import Response
from lazulite.protocol.xml import document as xml
from lazulite.records.spaces import TABLES, CatalogFormat, IndexFormat, ReportNouns, Space
from lazulite.service.definition import ServiceDefinition, ServiceDependencies
from lazulite.service.fault_injection import Addressed, addressed_by_url
from lazulite.service.kernel import ServiceKernel
from lazulite.service.rejection import Rejection, xml_response
from lazulite.service.responses import NO_CACHE, NO_SNIFF
from lazulite.table.call import Call, Context, make_context
from lazulite.table.catalog import Table
from lazulite.table.credentials import TABLE_CREDENTIALS
from lazulite.table.errors import MESSAGE_AS_REASON, MESSAGES
from lazulite.table.expiry.sweep import SWEEP_SECONDS
from lazulite.table.indexes.build_notes import BUILDS_SPACE
from lazulite.table.indexes.entries import index_format
from lazulite.table.model.row import assemble, decode_row, encode_keys, encode_properties, ticks_of
from lazulite.table.operations.write_decisions import APPLY_ALL, APPLY_ONE, REJECTION
from lazulite.table.payload.formats import HEADER_MAX, format_for_error
from lazulite.table.query.filter import FilterSyntaxError
from lazulite.table.resource import USUAL_PATH, USUAL_START, Kind, Resource, parse_service_resource, resolve_method
from lazulite.table.routes import ROUTES, component

_BATCH = re.compile(r".*/(?:\$|%24)batch/?", re.DOTALL)
_XML_COMPONENTS: Mapping[str, Sequence[tuple[str, str]]] = {"acl": (), "properties": (NO_SNIFF,), "stats": (NO_SNIFF,)}
"""The components that speak XML, and what the type of an error in it goes with. Recorded of `acl`."""

_LINES_MAX = 64
"""The lines of a batch among which the head of its first operation is looked for."""
_BODY_MAX = 2 * 1024 * 1024
"""A longer body is rejected anyway."""
SERVER = "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"
"""Some SDKs read it."""


def _of_front_door(rejection: Rejection) -> bool:
    """Tell whether an error is of the credentials of a batch, and Accept names XML or no type (reference §25)."""
    request = rejection.request
    if rejection.error.code not in CREDENTIAL_REJECTIONS or _BATCH.fullmatch(request.path) is None:
        return False
    accept = request.headers.get("accept", "")
    return not accept.strip() or "xml" in accept[:HEADER_MAX].lower()


def reject(rejection: Rejection) -> Response:
    """Return the response in the format that the client accepts; XML for operations that speak XML (§16)."""
    error, request = rejection.error, rejection.request
    more = _XML_COMPONENTS.get(rejection.parameters.get("comp", "").lower())
    if more is not None or _of_front_door(rejection):
        return xml_response(rejection, xml.error_document(error.code, rejection.text, error.details), more or ())
    wanted = format_for_error(rejection.version, request.headers, rejection.parameters.get("$format", ""))
    body = wanted.error(error, request.id, rejection.time)
    # As recorded, the rejection of a filter is the one that says nothing of caches.
    caching = [] if isinstance(error, FilterSyntaxError) else [NO_CACHE]
    content_type = wanted.error_type
    if error.code in CREDENTIAL_REJECTIONS:
        content_type = content_type.partition(";")[0]
    headers = [("Content-Type", content_type), NO_SNIFF, *caching, *rejection.headers]
    return Response(error.status, headers, body, error.code, error.message if error.code in MESSAGE_AS_REASON else "")


def _read_table(row: str, value: bytes) -> tuple[int, str]:
    table = Table.from_bytes(value)
    if table.name.lower() != row:
        raise ValueError(f"table {row} is called {table.name}")
    return table.space, table.name


def _indexes_of(value: bytes) -> Sequence[IndexFormat]:
    return [index_format(index) for index in Table.from_bytes(value).indexes.declared]


def _verify_entity(key: Key, value: bytes, timestamp_max: int) -> None:
    row = decode_row(value)
    again = assemble(row.ticks, encode_keys(row.partition_key, row.row_key), encode_properties(row.properties))
    if again != value or (row.partition_key, row.row_key) != key:
        raise ValueError("the entity is not as Lazulite writes it")
    for edm, literal in row.properties.values():
        edm.decode(literal)
    if row.ticks > timestamp_max:
        raise ValueError("a Timestamp that the store never gave")


def addressed(call: Call) -> Addressed:
    """Return what a call is about; of an insert in another format than JSON, the table alone."""
    resource = call.resource
    if call.method == "POST" and resource.kind is Kind.TABLES:
        return Addressed(_texts(call).get("TableName", ""))
    if call.method == "POST" and resource.kind is Kind.ENTITIES:
        texts = _texts(call)
        return Addressed(resource.table, f"{texts.get('PartitionKey', '')}/{texts.get('RowKey', '')}")
    if resource.kind is Kind.BATCH:
        return Addressed(_table_of(call.request.body), changes=b"multipart/mixed" in call.request.body)
    return addressed_by_url(call)


def _table_of(batch: bytes) -> str:
    """Return the table of the first operation of a batch; "" if its URL is not a usual one."""
    for line in batch.split(b"\n", _LINES_MAX)[:_LINES_MAX]:
        method, _, rest = line.strip().partition(b" ")
        url, _, version = rest.rpartition(b" ")
        if method.isalpha() and version.startswith(b"HTTP/"):
            path = url.partition(b"?")[0].partition(b"(")[0]
            return unquote_to_bytes(path.rpartition(b"/")[2]).decode("ascii", "replace")
    return ""


def _texts(call: Call) -> Mapping[str, str]:
    """Return the texts of a body of JSON; no texts of any other body."""
    body = call.request.body
    try:
        given = json.loads(body) if len(body) <= _BODY_MAX else None
    except (ValueError, RecursionError):
        given = None
    return {name: text for name, text in given.items() if isinstance(text, str)} if isinstance(given, dict) else {}


TABLES_SPACE = Space(
    number=TABLES,
    owner="table",
    title="the list of tables",
    watched=True,
    copied=True,
    in_checksum=True,
    catalog=CatalogFormat(
        ReportNouns("table", "tables", "entities"), _read_table, _verify_entity, ticks_of, indexes=_indexes_of
    ),
)


TABLE: ServiceDefinition[Context, Resource, Call] = ServiceDefinition(
    name="table",
    server=SERVER,
    credentials=TABLE_CREDENTIALS,
    routes=ROUTES,
    parse_resource=parse_service_resource,
    make_context=make_context,
    make_call=Call,
    component=component,
    method=resolve_method,
    reject=reject,
    messages=MESSAGES,
    keyed_path=USUAL_PATH,
    keyed_starts=(USUAL_START,),
    spaces=(TABLES_SPACE, MAPS_SPACE, ROUNDS_SPACE, BUILDS_SPACE),
    addressed=addressed,
    dropped_code="TableNotFound",
    commits=(APPLY_ONE, APPLY_ALL),
    rejections=(REJECTION,),
    maintain_seconds=SWEEP_SECONDS,
)


class TableService(ServiceKernel[Context, Resource, Call]):
    """The Table service on one engine.

    Args:
        dependencies: of the process.
    """

    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(TABLE, dependencies)
