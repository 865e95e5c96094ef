"""The point query. Source: reference §9.1, §10."""

from lazulite.engine.contract import UNKNOWN
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import FoundRow, Request, Response
from lazulite.service.routing import Keys, Operation
from lazulite.table.call import Call
from lazulite.table.model.row import LARGE_BYTES, stored_etag
from lazulite.table.odata_version import require_odata
from lazulite.table.payload.formats import Format
from lazulite.table.payload.interfaces import EntityWriter
from lazulite.table.query.options import read_select
from lazulite.table.responses import POINT_TIMING, entity_opening

_POINT = "point"


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


def get_entity(call: Call) -> Operation:
    """Return the point query of a call, to be awaited. A `$filter` is ignored (*unverified*; no SDK sends one).

    Raises:
        ServiceError: 400, 403 or 415; awaiting it raises the others.
    """
    resource = call.resource
    call.require_key(resource.partition_key, resource.row_key)
    return EntityRead(call, call.format()).run(call.request, (resource.partition_key, resource.row_key))


def plan_read(call: Call) -> "EntityRead | None":
    """Return the point query of all requests with the words of a call, if these settle enough."""
    wanted = call.format()
    if "$select" in call.parameters or call.has_key_range or not wanted.writer_lasts:
        return None
    return EntityRead(call, wanted)


class EntityRead:
    """A `PlannedOperation`: the point query of one table in one format.

    Args:
        call: one of its requests.
        wanted: the format.

    Raises:
        ServiceError: 400.
    """

    __slots__ = ("_account", "_call", "_opening", "_table", "_writer")

    def __init__(self, call: Call, wanted: Format) -> None:
        self._call = call
        self._account = call.account
        self._table = call.resource.table
        self._writer = selecting_writer(call, wanted)
        self._opening = entity_opening(call, wanted)

    def at_once(self, request: Request, keys: Keys) -> Response | None:
        """See `PlannedOperation`. A large entity has to `run`."""
        context = self._call.context
        table = context.catalog.cached(self._account, self._table)
        if table is None:
            return None
        monotonic = context.monotonic
        started = monotonic()
        value = context.engine.get_now(table.space, *keys)
        if value is UNKNOWN:
            return None
        if value is None:
            _note(request, 0)
            raise ServiceError("ResourceNotFound")
        seconds = monotonic() - started
        if len(value) > LARGE_BYTES:
            request.found = FoundRow(value, seconds)
            return None
        opening = self._opening_of(value, seconds)
        _note(request, 1)
        return Response(200, [], self._writer.entity(value), opening=opening)

    async def run(self, request: Request, keys: Keys) -> Response:
        """See `PlannedOperation`."""
        found, request.found = request.found, None
        if found is None:
            found = await self._read(keys)
        _note(request, 0 if found is None else 1)
        if found is None:
            raise ServiceError("ResourceNotFound")
        value = found.value
        opening = self._opening_of(value, found.seconds)
        if len(value) > LARGE_BYTES:
            body = await self._call.time_slice().run(self._writer.entity_steps(value))
        else:
            body = self._writer.entity(value)
        return Response(200, [], body, opening=opening)

    async def _read(self, keys: Keys) -> FoundRow | None:
        context, account, name = self._call.context, self._account, self._table
        table = context.catalog.cached(account, name) or await context.catalog.require_table(account, name)
        started = context.monotonic()
        value = await context.engine.get(table.space, *keys)
        return None if value is None else FoundRow(value, context.monotonic() - started)

    def _opening_of(self, value: bytes, seconds: float) -> str:
        return f"{self._opening}ETag: {stored_etag(value)}\r\nServer-Timing: {POINT_TIMING % (seconds * 1000)}\r\n"


def _note(request: Request, returned: int) -> None:
    record = request.record
    record.query_class, record.rows_scanned, record.rows_returned = _POINT, 1, returned
