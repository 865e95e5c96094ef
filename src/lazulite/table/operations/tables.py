"""Create, get, list and delete tables, get and set a table's ACL, and reject what is addressed below a table.

An endpoint that ends with a table's name leads below it, to `/T/Tables`, `/T/Tables('U')` or `/T/$batch`. That is a
frequent mistake: SDKs recognise the service's responses and explain it. A `POST` there has the response of an insert
into T of an entity without keys. Invariant: nothing is ever written below a table.

Source: reference §8.1–§8.6; only an account key may use an ACL. Below a table: reference §1; that a query is
`NotImplemented` is what tests of the Python SDK expect, and *unverified* where T does not exist.
"""

from collections.abc import Callable

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.service.fault_injection import page_entries
from lazulite.service.responses import XML_TYPE
from lazulite.service.signed_identifiers import read_signed_identifiers, write_signed_identifiers
from lazulite.table.call import Call
from lazulite.table.catalog import Table
from lazulite.table.etag_condition import reject_conditions
from lazulite.table.model.edm import Value
from lazulite.table.names import check_table_name
from lazulite.table.payload.formats import Preference, read_preference
from lazulite.table.payload.links import table_link
from lazulite.table.query.continuation import TABLE_HEADER, decode_token, encode_token
from lazulite.table.query.filter import compile_predicate, parse
from lazulite.table.query.options import read_top, reject_unknown_options
from lazulite.table.resource import wrong_key_count
from lazulite.table.responses import (
    LOCATION_LINES,
    created_opening,
    entity_answer,
    feed_answer,
    no_content_opening,
    preference_applied,
)


async def create_table(call: Call) -> Response:
    """Create the table that the body names.

    Raises:
        ServiceError: `TableAlreadyExists`, with the preference as applied; 400, 403 or 415.
    """
    reject_conditions(call.request.headers)
    name = await call.read_table_name()
    wanted = call.format()
    preference = read_preference(call.request.headers, call.version)
    check_table_name(name)
    try:
        await call.context.catalog.create(call.account, name)
    except ServiceError as error:
        error.headers = preference_applied(preference)  # As recorded, of all rejections this one repeats it.
        raise
    location = call.address.base + table_link(name)
    if preference is Preference.NO_CONTENT:
        return Response(204, opening=created_opening(call) + LOCATION_LINES.format(location))
    body = call.table_writer(wanted).table(name)
    return entity_answer(call, 201, wanted, body, [*preference_applied(preference), ("Location", location)])


async def get_table(call: Call) -> Response:
    """Return one table, its name as its creator wrote it."""
    wanted = call.format()
    table = await call.context.catalog.require(call.account, call.resource.table)
    return entity_answer(call, 200, wanted, call.table_writer(wanted).table(table.name), [])


async def delete_table(call: Call) -> Response:
    """Delete a table, whatever its size, at once. An If-Match is tolerated."""
    await call.context.catalog.delete(call.account, call.resource.table)
    return Response(204, opening=no_content_opening(call))


def _reader(name: str) -> Callable[[Table], Value | None]:
    return (lambda table: table.name) if name == "TableName" else (lambda _: None)


def _every(_: Table) -> bool:
    return True


async def query_tables(call: Call) -> Response:
    """Return a page of the account's tables, in the order of their lower-case names."""
    parameters = call.parameters
    reject_unknown_options(parameters)
    asked = read_top(parameters)
    top = page_entries(call, asked)
    wanted = call.format()
    text = parameters.get("$filter", "")
    matches = compile_predicate(parse(text), _reader) if text.strip() else _every
    start = decode_token(parameters.get("nexttablename", "")).lower()
    names: list[str] = []
    following = ""
    scanned = 0
    async for table in call.context.catalog.list(call.account, start):
        if call.context.monotonic() > call.deadline or not top:
            following = table.name if asked else ""
            break
        scanned += 1
        if matches(table):
            if len(names) == top:
                following = table.name
                break
            names.append(table.name)
    call.record.rows_scanned, call.record.rows_returned = scanned, len(names)
    headers = [(TABLE_HEADER, encode_token(following.lower()))] if following else []
    return feed_answer(call, wanted, call.table_writer(wanted).feed(names), headers)


async def get_acl(call: Call) -> Response:
    """Return the stored access policies of a table."""
    table = await call.context.catalog.require(call.account, call.resource.table)
    return Response(200, [XML_TYPE], write_signed_identifiers(table.policies))


async def set_acl(call: Call) -> Response:
    """Replace the stored access policies of a table; they hold from the next request on."""
    policies = read_signed_identifiers(call.request.body)
    await call.context.catalog.set_policies(call.account, call.resource.table, policies)
    return Response(204)


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
