"""Run a batch: prepare every write as a single request would be, apply them all in one commit, respond to each.

Invariants: nothing is written unless everything is; the first rejection, in the order of the operations, counts.
A lack of permission or a malformed body rejects the batch as a whole; every other error is a part of a 202, with
the index of the operation before its message. The event loop is held no longer than `slice_seconds` and one operation,
but for the commit. Source: reference §11.2–§11.4.

The responses of parts that share a head differ in the row key of an address, in their Content-ID and in an entity. So
they are encoded once, with marks for these, which no header can hold.
"""

from collections.abc import Awaitable, Sequence
from functools import partial
from http import HTTPStatus

from lazulite.engine.contract import SpaceDroppedError
from lazulite.partitions.gate import ThrottledError
from lazulite.protocol.content_md5 import check_content_md5
from lazulite.protocol.errors import AuthorityError, ServiceError
from lazulite.protocol.message import Response, SubOperation
from lazulite.protocol.multipart import (
    PART_END,
    PARTS_MAX,
    BatchBody,
    Head,
    Part,
    change_set_response,
    encode_part,
    part_head,
    query_response,
    read_batch,
)
from lazulite.protocol.steps import Steps
from lazulite.service.fault_injection import Addressed, FaultInjection
from lazulite.service.time_slice import TimeSlice
from lazulite.table.batch.inner_calls import KEYED_URL, ValidatedHeads, inner_call
from lazulite.table.call import Call, metered_table
from lazulite.table.catalog import Table
from lazulite.table.entity_routes import PARTS
from lazulite.table.model.row import etag_of
from lazulite.table.operations.entity_writes import (
    SMALL_BYTES,
    ValidatedWrite,
    WriteEntity,
    opening_of,
    prepare,
    prepare_usual,
    row_of,
)
from lazulite.table.operations.write_decisions import INSERT, NAMES, EntityWrite, WriteRejectedError, apply_all
from lazulite.table.payload.formats import format_for_error, read_preference
from lazulite.table.payload.interfaces import EntityWriter
from lazulite.table.payload.links import linked_key
from lazulite.table.responses import batch_error, preference_applied

_ROW_KEY, _CONTENT_ID = b"\0", b"\1"

_Operation = tuple[ValidatedWrite, EntityWrite]
_TOO_MANY = f"The batch request operation exceeds the maximum {PARTS_MAX} changes per change set."
_USUAL_PARTS_OF_A_STEP = 8
_WITHOUT_INDEX = frozenset(
    {
        "EntityAlreadyExists",
        "EntityTooLarge",
        "PropertyValueTooLarge",
        "ResourceNotFound",
        "UpdateConditionNotSatisfied",
    }
)
"""The errors that carry no index when it is the only operation of its change set that fails, as recorded."""


class ResponseParts:
    """The responses of the operations of one change set, all of one partition, that were applied at `timestamp`."""

    def __init__(self, timestamp: int) -> None:
        self._timestamp = timestamp
        self._by_head: dict[Head, tuple[bytes, EntityWriter | None]] = {}
        """Responses without their entities, encoded, with marks; and what spells the entities."""

    def encode(self, validated: ValidatedWrite, write: EntityWrite, part: Part) -> tuple[bytes, EntityWriter | None]:
        """Return the response of an operation, given its head, validated and as sent.

        Returns:
            The encoded response, whole; or, with what spells the entity, up to its body.
        """
        found = self._by_head.get(part.head)
        if found is None:
            found = self._by_head[part.head] = self._encode(validated, write, part.head)
        encoded, writer = found
        if write.kind is INSERT:
            encoded = encoded.replace(_ROW_KEY, linked_key(write.row_key).encode("ascii"))
        if _CONTENT_ID in encoded:
            encoded = encoded.replace(_CONTENT_ID, (part.content_id or "").encode("ascii"))
        return encoded, writer

    def _encode(self, validated: ValidatedWrite, write: EntityWrite, head: Head) -> tuple[bytes, EntityWriter | None]:
        status, opening = opening_of(validated, write, etag_of(self._timestamp), _ROW_KEY.decode())
        content_id = None if head.content_id is None else _CONTENT_ID.decode()
        encoded = part_head(Response(status, opening=opening), content_id)
        return (encoded, validated.echo_writer()) if write.echoes else (encoded + PART_END, None)


async def run_batch(call: Call) -> Response:
    """Run an entity group transaction, or the one query that a batch may hold instead.

    Raises:
        ServiceError: `InvalidInput`; `InsufficientAccountPermissions`, a change set on the secondary; 403 (404 for old
            SAS versions), the credentials do not permit an operation.
    """
    time_slice = call.time_slice()
    content_type = call.request.headers.get("content-type", "")
    batch = await time_slice.run(read_batch(content_type, call.request.body, KEYED_URL))
    if not batch.in_change_set:
        return await _run_query(call, batch.parts[0])
    if call.address.secondary:
        raise ServiceError("InsufficientAccountPermissions")
    try:
        parts = await _run_changes(call, batch, time_slice)
    except WriteRejectedError as rejection:
        if isinstance(rejection.error, AuthorityError):
            raise rejection.error from None
        parts = [_rejected_part(call, batch, rejection)]
    return change_set_response(parts, call.context.random)


async def _run_query(call: Call, part: Part) -> Response:
    try:
        inner = inner_call(call, part.head)
        route = PARTS.find(inner)
        if route is None or isinstance(route.operate, WriteEntity):
            raise ServiceError("InvalidInput")
        inner.authorize(route.requires)
        response = await route.respond(inner)
    except (AuthorityError, ThrottledError):
        raise
    except ServiceError as error:
        response = _rejection(call, part.head, error, "0:", [])
    return query_response(response, part.head.content_id, call.context.random)


async def _run_changes(call: Call, batch: BatchBody, time_slice: TimeSlice) -> list[bytes]:
    operations = await time_slice.run(_prepare(call, batch))
    if not operations:
        # *Unverified*: the response of an empty change set is an empty one.
        return []
    writes = [write for _, write in operations]
    if call.context.faults.active and call.record.fault is None:
        await _inject(operations)
    timestamp = await _commit(operations[0][0].call, writes, len(call.request.body))
    call.record.rows_returned = len(writes)
    properties = call.context.properties.cached(call.account)
    if properties is not None and properties.logging.write:
        call.record.operations = _sub_operations(operations, timestamp)
    return await time_slice.run(_respond(operations, batch, timestamp))


def _sub_operations(operations: Sequence[_Operation], timestamp: int) -> list[SubOperation]:
    etag = etag_of(timestamp)
    return [
        SubOperation(
            NAMES[write.kind],
            (validated.call.resource.table, write.partition_key, write.row_key),
            "" if write.kind.deletes else etag,
        )
        for validated, write in operations
    ]


def _prepare(call: Call, batch: BatchBody) -> Steps[list[_Operation]]:
    heads = ValidatedHeads(call)
    operations: list[_Operation] = []
    first: ValidatedWrite | None = None
    partition_key, rows = "", set[str]()
    for index, part in enumerate(batch.parts):
        if index >= PARTS_MAX:
            # Recorded for 101 operations: the index in the message is 99.
            raise WriteRejectedError(PARTS_MAX - 1, ServiceError("InvalidInput", _TOO_MANY))
        try:
            if "content-md5" in part.head.headers:
                check_content_md5(part.head.headers, part.body)
            validated, keys, condition = heads.validate(part)
            write = prepare_usual(validated, part.body, keys, condition)
            if write is None:
                yield
                write = yield from prepare(validated, part.body, keys, condition)
            elif not index % _USUAL_PARTS_OF_A_STEP:
                yield
            if not operations:
                first, partition_key = validated, write.partition_key
            elif validated is not first or write.partition_key != partition_key or write.row_key in rows:
                _check_membership(validated, write, *operations[0], rows)
        except ServiceError as error:
            raise WriteRejectedError(index, error) from None
        operations.append((validated, write))
        rows.add(write.row_key)
    return operations


async def _inject(operations: Sequence[_Operation]) -> None:
    """Let the parts suffer from faults, each as the operation that it is.

    Raises:
        WriteRejectedError: a rule rejects a part.
    """
    injection = FaultInjection(operations[0][0].call.context.faults, "table")
    for index, (validated, write) in enumerate(operations):
        call = validated.call
        route = PARTS.find(call)
        assert route is not None, "the part was validated"
        addressed = Addressed(call.resource.table, f"{write.partition_key}/{write.row_key}")
        try:
            await injection.before(call, route, addressed, is_part=True)
        except ServiceError as error:
            raise WriteRejectedError(index, error) from None


def _respond(operations: Sequence[_Operation], batch: BatchBody, timestamp: int) -> Steps[list[bytes]]:
    parts: list[bytes] = []
    responses = ResponseParts(timestamp)
    for index, ((validated, write), part) in enumerate(zip(operations, batch.parts, strict=True)):
        encoded, writer = responses.encode(validated, write, part)
        row = b"" if writer is None else row_of(write, timestamp)
        if len(row) > SMALL_BYTES or not index % _USUAL_PARTS_OF_A_STEP:
            yield
        if writer is not None:
            encoded = b"".join((encoded, (yield from writer.entity_steps(row)), PART_END))
        parts.append(encoded)
    return parts


def _check_membership(
    validated: ValidatedWrite, write: EntityWrite, first: ValidatedWrite, first_write: EntityWrite, rows: set[str]
) -> None:
    """Reject an operation on another partition or table than the first one's, or on a row that an earlier one has."""
    same_table = validated is first or validated.call.resource.table.lower() == first.call.resource.table.lower()
    if not same_table or write.partition_key != first_write.partition_key:
        raise ServiceError("CommandsInBatchActOnDifferentPartitions")
    if write.row_key in rows:
        raise ServiceError("InvalidDuplicateRow")


async def _commit(first: Call, writes: Sequence[EntityWrite], body_bytes: int) -> int:
    """Return the timestamp of writes that are durable, given the call of the first one and the bytes of the batch.

    Raises:
        ThrottledError: see `LivePartitions.run`; the whole batch is refused.
        WriteRejectedError: one of them is rejected.
    """
    context = first.context
    try:
        table = await context.catalog.require_table(first.account, first.resource.table)
        if context.gate is None:
            return await _write(first, table, writes)
        charge = first.charge_at(table, writes[0].partition_key)
        charge = charge._replace(cost=len(writes), size=body_bytes, writes=True)
        return await context.gate.run(charge, first.record, partial(_write, first, table, writes))
    except SpaceDroppedError:
        raise WriteRejectedError(0, ServiceError("TableNotFound")) from None
    except ThrottledError:
        raise
    except ServiceError as error:
        raise WriteRejectedError(0, error) from None


def _write(first: Call, table: Table, writes: Sequence[EntityWrite]) -> Awaitable[int]:
    """Begin writes; return their timestamp, once they are durable."""
    meter = first.context.meter
    if meter is not None:
        counts = (0, 0, len(writes), sum(len(write.encoded) for write in writes), 0, 1, 0)
        meter.note(metered_table(first), writes[0].partition_key, counts)
        if meter.recording is not None:
            rows = [write.row_key for write in writes]
            meter.recording.note_write(metered_table(first), writes[0].partition_key, rows, meter.now)
    for write in writes:
        write.indexes = table.indexes
    return first.context.engine.commit(table.space, writes[0].partition_key, apply_all(writes))


def _rejected_part(call: Call, batch: BatchBody, rejection: WriteRejectedError) -> bytes:
    index, error = rejection.index, rejection.error
    head = batch.parts[index].own_head
    alone = len(batch.parts) == 1 and error.code in _WITHOUT_INDEX
    # As recorded, an insert into a missing table has applied nothing.
    prefers = head.method == "POST" and error.status != HTTPStatus.NOT_FOUND
    applied = preference_applied(read_preference(head.headers, call.version)) if prefers else []
    return encode_part(_rejection(call, head, error, "" if alone else f"{index}:", applied), head.content_id)


def _rejection(call: Call, head: Head, error: ServiceError, prefix: str, applied: list[tuple[str, str]]) -> Response:
    wanted = format_for_error(call.version, head.headers, "")
    prefixed = ServiceError(error.code, f"{prefix}{error.message}", status=error.status)
    body = wanted.error(prefixed, call.request.id, call.context.time())
    return batch_error(error, wanted, body, applied)
