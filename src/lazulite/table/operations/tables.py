"""Create, get, list and delete tables. Source: reference §8.1–§8.4."""

from collections.abc import Callable

from lazulite.auth.grant import Requirement
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.table.call import Call
from lazulite.table.catalog import Table
from lazulite.table.etag_condition import refuse_conditions
from lazulite.table.model.edm import Value
from lazulite.table.names import check_table_name
from lazulite.table.payload.links import table_link
from lazulite.table.payload.negotiation import Preference, read_preference
from lazulite.table.query.continuation import TABLE_HEADER, decode_token, encode_token
from lazulite.table.query.filter import compile_predicate, parse
from lazulite.table.query.options import read_top, refuse_unknown_options
from lazulite.table.responses import created_without_content, entity_answer, feed_answer, no_content, preference_applied

LIST = Requirement("c", ("l",), None)
CREATE = Requirement("c", ("c", "w"), None)
DELETE = Requirement("c", ("d",), None)


async def create_table(call: Call) -> Response:
    """Create the table that the body names.

    Raises:
        ServiceError: `TableAlreadyExists`, with the preference as applied; 400, 403 or 415.
    """
    call.authorize(CREATE)
    refuse_conditions(call.request.headers)
    name = await call.read_table_name()
    wanted = call.format()
    preference = read_preference(call.request.headers, call.version)
    check_table_name(name)
    try:
        await call.context.catalog.create(call.account, name)
    except ServiceError as error:
        error.headers = preference_applied(preference)  # As recorded, of all refusals this one repeats it.
        raise
    location = call.address.base + table_link(name)
    if preference is Preference.NO_CONTENT:
        return created_without_content(call, location)
    body = call.table_writer(wanted).table(name)
    return entity_answer(call, 201, wanted, body, [*preference_applied(preference), ("Location", location)])


async def get_table(call: Call) -> Response:
    """Return one table, its name as its creator spelled it."""
    call.authorize(LIST)
    wanted = call.format()
    table = await call.context.catalog.get(call.account, call.resource.table)
    if table is None:
        raise ServiceError("ResourceNotFound")
    return entity_answer(call, 200, wanted, call.table_writer(wanted).table(table.name), [])


async def delete_table(call: Call) -> Response:
    """Delete a table, whatever its size, at once. An If-Match is tolerated."""
    call.authorize(DELETE)
    await call.context.catalog.delete(call.account, call.resource.table)
    return no_content(call)


def _reader(name: str) -> Callable[[Table], Value | None]:
    return (lambda table: table.name) if name == "TableName" else (lambda _: None)


def _every(_: Table) -> bool:
    return True


async def query_tables(call: Call) -> Response:
    """Return a page of the account's tables, in the order of their lower-case names."""
    call.authorize(LIST)
    parameters = call.parameters
    refuse_unknown_options(parameters)
    top = read_top(parameters)
    wanted = call.format()
    text = parameters.get("$filter", "")
    matches = compile_predicate(parse(text), _reader) if text.strip() else _every
    start = decode_token(parameters.get("nexttablename", "")).lower()
    names: list[str] = []
    following = ""
    scanned = 0
    async for table in call.context.catalog.list(call.account, start):
        if call.context.monotonic() > call.deadline or not top:
            following = table.name if top else ""
            break
        scanned += 1
        if matches(table):
            if len(names) == top:
                following = table.name
                break
            names.append(table.name)
    call.request.rows_scanned, call.request.rows_returned = scanned, len(names)
    headers = [(TABLE_HEADER, encode_token(following.lower()))] if following else []
    return feed_answer(call, wanted, call.table_writer(wanted).feed(names), headers)
