"""The collection query. Source: reference §9.2, §10; classes: the table design guide."""

from collections.abc import Callable

from lazulite.engine.contract import Key, KeyRange
from lazulite.engine.key_range import clip
from lazulite.protocol.message import Response
from lazulite.table.call import Call
from lazulite.table.model.property_reader import SEARCHED_MAX, decoded_row_reader, property_reader
from lazulite.table.operations.entity_read import selecting_writer
from lazulite.table.query.continuation import entity_continuation_headers, read_entity_continuation
from lazulite.table.query.filter import Node, compile_predicate, parse, plan, query_class, readings_of
from lazulite.table.query.options import read_top, reject_unknown_options
from lazulite.table.query.page import Page, PageRequest, read_page
from lazulite.table.query.row_predicates import row_test
from lazulite.table.responses import page_answer, server_timing
from lazulite.table.sas import TableScope

_EVERYTHING = KeyRange(("", ""), None)


async def query_entities(call: Call) -> Response:
    """Return a page of the entities that match."""
    parameters = call.parameters
    reject_unknown_options(parameters)
    top = read_top(parameters)
    wanted = call.format()
    writer = selecting_writer(call, wanted)
    start = read_entity_continuation(parameters)
    text = parameters.get("$filter", "")
    time_slice = call.time_slice()
    tree = parse(text) if text.strip() else None
    ranges, rest = ((_EVERYTHING,), None) if tree is None else await time_slice.run(plan(tree))
    predicate = None if rest is None else _predicate(rest)
    table = await call.context.catalog.require_table(call.account, call.resource.table)
    within = _within(call, ranges, start)
    request = PageRequest(table.space, within, predicate, writer.item, writer.item_steps, top, call.deadline)
    started = call.context.monotonic()
    page = await read_page(call.context.engine, request, call.context.limits, call.context.monotonic)
    headers = _headers(call, page, query_class(tree), call.context.monotonic() - started)
    return page_answer(call, wanted, writer.feed(empty=not page.items), page, headers)


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
    record = call.request.record
    record.query_class, record.rows_scanned, record.rows_returned = name, page.scanned, returned
    headers = [] if page.next is None else entity_continuation_headers(page.next)
    headers.append(("Server-Timing", server_timing(name, page.scanned, returned, seconds)))
    return headers
