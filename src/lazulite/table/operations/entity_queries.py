"""Point query and collection query. Source: reference §9.1, §9.2, §10; classes: the table design guide."""

from collections.abc import Callable

from lazulite.auth.grant import Requirement
from lazulite.engine.contract import Key, KeyRange
from lazulite.engine.key_range import clip
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.table.call import Call
from lazulite.table.model.row import SEARCHED_MAX, decoded_row_reader, property_reader, stored_etag
from lazulite.table.odata_version import require_odata
from lazulite.table.payload.formats import Format
from lazulite.table.payload.interfaces import EntityWriter
from lazulite.table.query.continuation import entity_continuation_headers, read_entity_continuation
from lazulite.table.query.filter import Node, compile_predicate, parse, plan, query_class, readings_of
from lazulite.table.query.options import read_select, read_top, refuse_unknown_options
from lazulite.table.query.page import Page, PageRequest, read_page
from lazulite.table.query.row_predicates import row_test
from lazulite.table.responses import entity_answer, feed_answer
from lazulite.table.sas import TableScope

READ = Requirement("o", ("r",), "r")
_POINT = "point"
_EVERYTHING = KeyRange(("", ""), None)


def _server_timing(name: str, scanned: int, returned: int, seconds: float) -> tuple[str, str]:
    """Return the standard header that says what a query cost."""
    return (
        "Server-Timing",
        f'query;desc="{name}";dur={seconds * 1000:.3f}, scanned;desc="{scanned}", returned;desc="{returned}"',
    )


def _writer(call: Call, wanted: Format) -> EntityWriter:
    if "$select" not in call.parameters:
        return call.entity_writer(wanted)
    select = read_select(call.parameters)
    if select is not None:
        require_odata(2, call.version, call.request.headers)
    return call.entity_writer(wanted, select, call.parameters["$select"])


async def get_entity(call: Call) -> Response:
    """Return one entity. A `$filter` is ignored here (*unverified*; no SDK sends one)."""
    call.authorize(READ)
    resource = call.resource
    call.require_key(resource.partition_key, resource.row_key)
    wanted = call.format()
    writer = _writer(call, wanted)
    catalog, account = call.context.catalog, call.address.account
    table = catalog.known(account, resource.table) or await catalog.require(account, resource.table)
    started = call.context.monotonic()
    value = await call.context.engine.get(table.space, resource.partition_key, resource.row_key)
    request = call.request
    request.query_class, request.rows_scanned, request.rows_returned = _POINT, 1, 0 if value is None else 1
    if value is None:
        raise ServiceError("ResourceNotFound")
    seconds = call.context.monotonic() - started
    headers = [("ETag", stored_etag(value)), _server_timing(_POINT, 1, 1, seconds)]
    return entity_answer(call, 200, wanted, writer.entity(value), headers)


async def query_entities(call: Call) -> Response:
    """Return a page of the entities that match."""
    call.authorize(READ)
    parameters = call.parameters
    refuse_unknown_options(parameters)
    top = read_top(parameters)
    wanted = call.format()
    writer = _writer(call, wanted)
    start = read_entity_continuation(parameters)
    text = parameters.get("$filter", "")
    turn = call.turn()
    tree = parse(text) if text.strip() else None
    ranges, rest = ((_EVERYTHING,), None) if tree is None else await turn.through(plan(tree))
    predicate = None if rest is None else _predicate(rest)
    table = await call.context.catalog.require(call.account, call.resource.table)
    within = _within(call, ranges, start)
    request = PageRequest(table.space, within, predicate, writer.item, top, call.deadline)
    started = call.context.monotonic()
    page = await read_page(call.context.engine, request, call.context.limits, call.context.monotonic)
    headers = _headers(call, page, query_class(tree), call.context.monotonic() - started)
    return feed_answer(call, wanted, writer.feed(page.items), headers)


def _predicate(rest: Node) -> Callable[[bytes], bool]:
    readings = readings_of(rest)
    if len(readings) > SEARCHED_MAX or readings.total() > 2 * SEARCHED_MAX:
        return compile_predicate(rest, decoded_row_reader())
    return compile_predicate(rest, property_reader, row_test)


def _within(call: Call, ranges: tuple[KeyRange, ...], start: Key | None) -> tuple[KeyRange, ...]:
    """Return what of the ranges the credentials reach and no earlier page has had."""
    scope = call.grant.scope
    if isinstance(scope, TableScope) and scope.key_range is not None:
        ranges = clip(ranges, scope.key_range)
    if start is not None:
        ranges = clip(ranges, KeyRange(start, None))
    return ranges


def _headers(call: Call, page: Page, name: str, seconds: float) -> list[tuple[str, str]]:
    returned = len(page.items)
    request = call.request
    request.query_class, request.rows_scanned, request.rows_returned = name, page.scanned, returned
    headers = [] if page.next is None else entity_continuation_headers(page.next)
    headers.append(_server_timing(name, page.scanned, returned, seconds))
    return headers
