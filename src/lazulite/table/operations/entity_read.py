"""Reads of entities: the point query, and the query of a table by pages.

Source: reference §9.1, §9.2, §10; classes of queries: the table design guide.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from lazulite.engine.contract import UNKNOWN, Key, KeyRange
from lazulite.engine.ordinal import ordinal
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response
from lazulite.protocol.template import KEY, Answer, HeadValues, Miss, PendingAnswer
from lazulite.service.fault_injection import page_entries
from lazulite.service.routing import Keys, PreparedOperation
from lazulite.table.call import Call, metered_table
from lazulite.table.catalog import Table
from lazulite.table.credentials import TableScope
from lazulite.table.indexes.planner import plan_indexes
from lazulite.table.indexes.reader import read_page_by_indexes
from lazulite.table.model.property_reader import SEARCHED_MAX, decoded_row_reader, property_reader
from lazulite.table.model.row import LARGE_BYTES, stored_etag
from lazulite.table.payload.formats import Format
from lazulite.table.payload.interfaces import EntityWriter
from lazulite.table.query.continuation import entity_continuation_headers, read_entity_continuation
from lazulite.table.query.filter import Node, compile_predicate, parse, plan, query_class, readings_of
from lazulite.table.query.options import read_select, read_top, reject_unknown_options
from lazulite.table.query.page import Page, PageRequest, read_page
from lazulite.table.query.row_predicates import row_test
from lazulite.table.query.shape import POINT_CONDITIONS, filtered_properties, shape_of
from lazulite.table.responses import POINT_TIMING, entity_opening, page_answer, server_timing
from lazulite.table.versions import require_odata
from lazulite.traffic.meter import Meter, Resource
from lazulite.traffic.recording import Recording

_POINT = "point"
_LAST = "\uffff"
"""A text that no key is above."""

_EVERYTHING = KeyRange(("", ""), None)


def selecting_writer(call: Call, wanted: Format) -> EntityWriter:
    """Return what serializes the entities of the addressed table, reduced to the properties of `$select`.

    Raises:
        ServiceError: the option is malformed, or not of the request's version.
    """
    if "$select" not in call.parameters:
        return call.entity_writer(wanted)
    select = read_select(call.parameters)
    if select is not None:
        require_odata(2, call.odata)
    return call.entity_writer(wanted, select, call.parameters["$select"])


class EntityRead(PreparedOperation):
    """The point query of one table in one format. A `$filter` is ignored (*unverified*; no SDK sends one).

    Args:
        call: one of its requests.

    Raises:
        ServiceError: 400, 403 or 415.
    """

    __slots__ = ("_account", "_call", "_lasts", "_meter", "_metered", "_opening", "_table", "_writer")

    def __init__(self, call: Call) -> None:
        resource = call.resource
        call.require_key(resource.partition_key, resource.row_key)
        wanted = call.format()
        self._call = call
        self._account = call.account
        self._table = resource.table
        self._meter, self._metered = call.context.meter, metered_table(call)
        self._writer = selecting_writer(call, wanted)
        self._opening = entity_opening(call, wanted)
        self._lasts = not ("$select" in call.parameters or call.has_key_range) and wanted.writer_lasts

    @property
    def lasts(self) -> bool:
        """See `PreparedOperation`: not if the key decides on the permission."""
        return self._lasts

    def respond(self, request: Request, keys: Keys) -> EventualResponse:
        """See `PreparedOperation`."""
        context = self._call.context
        table = context.catalog.cached(self._account, self._table)
        if table is None or context.gate is not None:
            return self._read(request, keys)
        monotonic = context.monotonic
        started = monotonic()
        value = context.engine.get_now(table.space, *keys)
        if value is UNKNOWN:
            return self._read(request, keys)
        if table.indexes.expiry is not None:
            value = table.indexes.expiry.living(value, context.clock())
        seconds = monotonic() - started
        if value is not None and len(value) > LARGE_BYTES:
            return self._respond_in_steps(request, keys, value, seconds)
        return self._respond_with(request, keys, value, seconds)

    @property
    def has_templates(self) -> bool:
        """See `PreparedOperation`: not where rows are a round trip away."""
        return self._call.context.engine.reads_now

    def repeated(self, names: Sequence[str]) -> "RepeatedRead | None":
        """See `PreparedOperation`."""
        return RepeatedRead(self) if names[:2] == (KEY, KEY) else None

    def answer(self, partition: str, row: str) -> Answer | Miss:
        """Return the answer with the row of these keys, if it is there and small."""
        context = self._call.context
        table = context.catalog.cached(self._account, self._table)
        if table is None:
            return Miss.OPERATION
        monotonic = context.monotonic
        started = monotonic()
        value = context.engine.get_now(table.space, partition, row)
        if value is UNKNOWN or value is None or len(value) > LARGE_BYTES:
            return Miss.OPERATION
        if table.indexes.expiry is not None and table.indexes.expiry.is_over(value, context.clock()):
            return Miss.OPERATION
        return Answer(200, self._opening_of(value, monotonic() - started), self._body(partition, value))

    async def _read(self, request: Request, keys: Keys) -> Response:
        context = self._call.context
        table = await context.catalog.require_table(self._account, self._table)
        read = partial(context.engine.get, table.space, *keys)
        started = context.monotonic()
        if context.gate is None:
            value = await read()
        else:
            charge = self._call.charge_at(table, keys[0])
            value = await context.gate.run(charge, request.record, read)
        if table.indexes.expiry is not None:
            value = table.indexes.expiry.living(value, context.clock())
        seconds = context.monotonic() - started
        if value is not None and len(value) > LARGE_BYTES:
            return await self._respond_in_steps(request, keys, value, seconds)
        return self._respond_with(request, keys, value, seconds)

    def _body(self, partition: str, value: bytes | None) -> bytes:
        """Return the body with a row, empty without one. All reads of small rows pass here, and are counted here."""
        body = b"" if value is None else self._writer.entity(value)
        if self._meter is not None:
            self._meter.note(self._metered, partition, (1, 0, 0, 0, len(body), 1, 0))
            if self._meter.recording is not None:
                _record_point(self._meter, self._meter.recording, self._metered, partition, value is not None)
        return body

    def _respond_with(self, request: Request, keys: Keys, value: bytes | None, seconds: float) -> Response:
        """Return the response with a row, which was read in so many seconds.

        Raises:
            ServiceError: `ResourceNotFound`.
        """
        record = request.record
        record.query_class, record.rows_scanned, record.rows_returned = _POINT, 1, int(value is not None)
        body = self._body(keys[0], value)
        if value is None:
            raise ServiceError("ResourceNotFound")
        return Response(200, [], body, opening=self._opening_of(value, seconds))

    async def _respond_in_steps(self, request: Request, keys: Keys, value: bytes, seconds: float) -> Response:
        record = request.record
        record.query_class, record.rows_scanned, record.rows_returned = _POINT, 1, 1
        opening = self._opening_of(value, seconds)
        body = await self._call.time_slice().run(self._writer.entity_steps(value))
        if self._meter is not None:
            self._meter.note(self._metered, keys[0], (1, 0, 0, 0, len(body), 1, 0))
            if self._meter.recording is not None:
                _record_point(self._meter, self._meter.recording, self._metered, keys[0], True)
        return Response(200, [], body, opening=opening)

    def _opening_of(self, value: bytes, seconds: float) -> str:
        return f"{self._opening}ETag: {stored_etag(value)}\r\nServer-Timing: {POINT_TIMING % (seconds * 1000)}\r\n"


def _record_point(meter: Meter, recording: Recording, table: Resource, partition: str, found: bool) -> None:
    """Record a point query."""
    values = (("PartitionKey", partition),)
    recording.note_query(table, POINT_CONDITIONS, values, meter.now, scanned=1, returned=int(found))


class RepeatedRead:
    """The point query, for templates. Implements `RepeatedOperation`."""

    __slots__ = ("_read",)
    waits = False

    def __init__(self, read: EntityRead) -> None:
        self._read = read

    def answer(self, values: HeadValues, _: bytes, __: PendingAnswer | None) -> Answer | Miss:
        """See `RepeatedOperation`."""
        return self._read.answer(values[0].decode("ascii"), values[1].decode("ascii"))


def _order(key: Key) -> tuple[bytes, bytes]:
    return ordinal(key[0]), ordinal(key[1])


def clip(ranges: Sequence[KeyRange], within: KeyRange) -> tuple[KeyRange, ...]:
    """Return the intersection of `ranges` with `within`; ascending and disjoint if `ranges` are."""
    return tuple(_clipped(ranges, within))


def _clipped(ranges: Sequence[KeyRange], within: KeyRange) -> Iterator[KeyRange]:
    for lower, upper in ranges:
        first = max(lower, within.lower, key=_order)
        ends = [end for end in (upper, within.upper) if end is not None]
        end = min(ends, key=_order) if ends else None
        if end is None or _order(first) < _order(end):
            yield KeyRange(first, end)


async def query_entities(call: Call) -> Response:
    """Return a page of the entities that match."""
    parameters = call.parameters
    reject_unknown_options(parameters)
    asked = read_top(parameters)
    top = page_entries(call, asked)
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
    read = partial(_read, call, table, tree)
    page = await (read(request) if call.context.gate is None else _read_range(call, table, request, read))
    if asked and not top and within:
        page.next = within[0].lower
    name = query_class(tree)
    headers = _headers(call, page, name, call.context.monotonic() - started)
    meter = call.context.meter
    if meter is not None:
        metered = metered_table(call)
        meter.note(metered, _covered(within, page), (0, page.scanned, 0, 0, page.items_bytes, 1, 0))
        meter.note_query(metered, name, page.scanned, len(page.items), filtered_properties(tree))
        if meter.recording is not None:
            shape = shape_of(tree)
            counts = {"top": asked or 0, "scanned": page.scanned, "returned": len(page.items)}
            meter.recording.note_query(
                metered, shape.conditions, shape.values, meter.now, is_first=start is None, **counts
            )
    return page_answer(call, wanted, writer.feed(empty=not page.items), page, headers)


async def _read(call: Call, table: Table, tree: Node | None, request: PageRequest) -> Page:
    """Read a page, by the indexes of the table if they serve the query. While targets are kept, they mostly do not."""
    context = call.context
    engine, limits, monotonic = context.engine, context.limits, context.monotonic
    declared, expiry = table.indexes.declared, table.indexes.expiry
    if expiry is not None:
        request = replace(request, predicate=expiry.predicate(request.predicate, context.clock()))
    targets = None if context.gate is None else context.gate.targets
    if targets is not None and not targets.indexes:
        declared = ()
    plan = plan_indexes(tree, declared) if tree is not None and declared else None
    if plan is not None:

        def is_current() -> bool:
            found = context.catalog.cached(call.account, call.resource.table)
            return found is not None and found.indexes == table.indexes

        page = await read_page_by_indexes(engine, plan, request, limits, monotonic, is_current=is_current)
        if page is not None:
            return page
    return await read_page(engine, request, limits, monotonic)


async def _read_range(
    call: Call, table: Table, request: PageRequest, read: Callable[[PageRequest], Awaitable[Page]]
) -> Page:
    """Read a page behind the gate. It ends with the range of partitions that it starts in.

    Raises:
        ThrottledError: see `LivePartitions.run`.
    """
    gate = call.context.gate
    assert gate is not None, "there is a gate"
    ranges = request.ranges
    start = ranges[0].lower[0] if ranges else ""
    charge = call.charge_at(table, start if _is_in_partition(ranges, start) else None, start)
    await gate.refresh()
    end = gate.map_of(charge.table).end_of(start)
    here = ranges if end is None else clip(ranges, KeyRange(("", ""), (end, "")))
    later = () if end is None else clip(ranges, KeyRange((end, ""), None))
    page = await gate.run(charge, call.record, partial(read, replace(request, ranges=here)))
    gate.owe(charge, max(0, page.scanned - 1))
    if page.next is None and later and request.top:
        page.next = later[0].lower
    return page


def _is_in_partition(ranges: Sequence[KeyRange], partition: str) -> bool:
    """Return whether ranges of rows, which begin in a partition, end there, too."""
    upper = ranges[-1].upper if ranges else None
    return upper is not None and (upper[0] == partition or upper == (f"{partition}\0", ""))


def _covered(ranges: Sequence[KeyRange], page: Page) -> str | tuple[str, str]:
    """Return the partition that a page read, or the first and the last one that it may have read."""
    if not ranges:
        return ""
    first = ranges[0].lower[0]
    end = page.next or ranges[-1].upper
    if end is None:
        return first, _LAST
    return first if end[0] == first or end == (f"{first}\0", "") else (first, end[0])


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
    headers.append(("Server-Timing", server_timing(name, page, seconds)))
    return headers
