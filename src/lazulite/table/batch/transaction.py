"""Run a batch: prepare every write as a single request would be, apply them all in one commit, answer each.

Invariants: nothing is written unless everything is; the first refusal, in the order of the operations, is the answer.
A lack of permission or a malformed body refuses the batch as a whole; everything else is answered inside a 202, with
the index of the operation before its message. The event loop is held no longer than `turn_seconds` and one operation,
but for the commit. Source: reference §11.2–§11.4.
"""

from collections.abc import Mapping, Sequence

from lazulite.engine.contract import SpaceDroppedError
from lazulite.protocol.errors import AuthorityError, ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.protocol.multipart.encoder import batch_response, encode_part
from lazulite.protocol.multipart.parser import PARTS_MAX, BatchBody, Head, Part, read_batch
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.version import UNSTATED, assumed_version, stated_version
from lazulite.service.time_slice import Turn
from lazulite.table.batch.responses import AnswerParts
from lazulite.table.call import Call
from lazulite.table.method_override import effective_method
from lazulite.table.odata_version import check_odata_version
from lazulite.table.operations.entity_queries import get_entity, query_entities
from lazulite.table.operations.entity_writes import Intent, find_write, prepare
from lazulite.table.operations.write_decisions import ApplyAll, EntityWrite, WriteRefusedError
from lazulite.table.payload.negotiation import format_for_error, read_preference
from lazulite.table.resource import Kind, parse_resource
from lazulite.table.responses import batch_error, preference_applied
from lazulite.table.versions import JSON_SINCE

_TOO_MANY = f"The batch request operation exceeds the maximum {PARTS_MAX} changes per change set."
_WITHOUT_INDEX = frozenset({"EntityAlreadyExists", "ResourceNotFound", "UpdateConditionNotSatisfied"})
"""What fails at execution carries no index when it is the only operation of its change set, as recorded."""


async def run_batch(call: Call) -> Response:
    """Run an entity group transaction, or the one query that a batch may hold instead.

    Raises:
        ServiceError: `InvalidInput`; `InsufficientAccountPermissions`, a change set on the secondary; 403 (404 for old
            SAS versions), the credentials do not permit an operation.
    """
    turn = call.turn()
    batch = await turn.through(read_batch(call.request.headers.get("content-type", ""), call.request.body))
    if not batch.in_change_set:
        return await _run_query(call, batch.parts[0])
    if call.address.secondary:
        raise ServiceError("InsufficientAccountPermissions")
    try:
        parts = await _run_changes(call, batch, turn)
    except WriteRefusedError as refusal:
        if isinstance(refusal.error, AuthorityError):
            raise refusal.error from None
        parts = [_refused_part(call, batch, refusal)]
    return batch_response(parts, in_change_set=True, random=call.context.random)


def _inner_call(call: Call, head: Head) -> Call:
    """Return the call that a part makes, as if it had come by itself with the batch's credentials."""
    path, _, query = head.url.partition("?")
    _, separator, rest = path.partition("://")
    if separator:
        path = rest.partition("/")[2]
    root = call.address.root
    # With a path-style endpoint some clients leave the account out of inner URLs.
    path = path.lstrip("/").removeprefix(root[1:])
    request = Request(head.method, root + path, query, head.headers, id=call.request.id)
    parameters = parse_query_string(query)
    return Call(
        call.context,
        request,
        call.address,
        parameters,
        _inner_version(call, head, parameters),
        call.grant,
        parse_resource(path),
        effective_method(request, in_batch=True),
        call.deadline,
        in_batch=True,
    )


def _inner_version(call: Call, head: Head, parameters: Mapping[str, str]) -> str:
    """Return the version of a part: the batch's; of one that names none, what the part itself makes believe.

    Raises:
        ServiceError: the part's OData version is none of that version.
    """
    version = call.version
    if version < JSON_SINCE:
        if version == UNSTATED and not stated_version(call.request.headers, call.parameters):
            version = assumed_version(head.headers, parameters)
        if version < JSON_SINCE:
            check_odata_version(version, head.headers, parameters)
    return version


async def _run_query(call: Call, part: Part) -> Response:
    try:
        inner = _inner_call(call, part.head)
        query = {Kind.ENTITY: get_entity, Kind.ENTITIES: query_entities}.get(inner.resource.kind)
        if inner.method != "GET" or query is None:
            raise ServiceError("InvalidInput")
        response = await query(inner)
        call.request.rows_scanned = inner.request.rows_scanned
        call.request.rows_returned = inner.request.rows_returned
        call.request.query_class = inner.request.query_class
    except AuthorityError:
        raise
    except ServiceError as error:
        response = _refusal(call, part.head, error, "0:", [])
    return batch_response(
        [encode_part(response, part.head.content_id)], in_change_set=False, random=call.context.random
    )


async def _run_changes(call: Call, batch: BatchBody, turn: Turn) -> list[bytes]:
    intents: dict[Head, Intent] = {}
    operations: list[tuple[Intent, EntityWrite]] = []
    rows: set[str] = set()
    for index, part in enumerate(batch.parts):
        if index >= PARTS_MAX:
            # Recorded for 101 operations: the index in the message is 99.
            raise WriteRefusedError(PARTS_MAX - 1, ServiceError("InvalidInput", _TOO_MANY))
        if turn.over:
            await turn.look()
        try:
            intent = intents.get(part.head)
            if intent is None:
                intent = intents[part.head] = _intent(call, part.head)
            write = await turn.through(prepare(intent, part.body))
            if operations:
                _check_membership(intent, write, *operations[0], rows)
        except ServiceError as error:
            raise WriteRefusedError(index, error) from None
        operations.append((intent, write))
        rows.add(write.row_key)
    if not operations:
        # *Unverified*: an empty change set is answered with an empty one.
        return []
    writes = [write for _, write in operations]
    stamp = await _commit(operations[0][0].call, writes)
    call.request.rows_returned = len(writes)
    answers: list[bytes] = []
    told = AnswerParts(stamp)
    for (intent, write), part in zip(operations, batch.parts, strict=True):
        if turn.over:
            await turn.look()
        answers.append(told.part(intent.call, write, part.head))
    return answers


def _intent(call: Call, head: Head) -> Intent:
    inner = _inner_call(call, head)
    kind = find_write(inner)
    if kind is None:
        raise ServiceError("InvalidInput")
    return Intent(inner, kind)


def _check_membership(
    intent: Intent, write: EntityWrite, first: Intent, first_write: EntityWrite, rows: set[str]
) -> None:
    """Refuse an operation on another partition or table than the first one's, or on a row that an earlier one has."""
    same_table = intent is first or intent.call.resource.table.lower() == first.call.resource.table.lower()
    if not same_table or write.partition_key != first_write.partition_key:
        raise ServiceError("CommandsInBatchActOnDifferentPartitions")
    if write.row_key in rows:
        raise ServiceError("InvalidDuplicateRow")


async def _commit(first: Call, writes: Sequence[EntityWrite]) -> int:
    try:
        table = await first.context.catalog.require(first.account, first.resource.table)
        rows = [write.row_key for write in writes]
        return await first.context.engine.commit(table.space, writes[0].partition_key, rows, ApplyAll(writes))
    except SpaceDroppedError:
        raise WriteRefusedError(0, ServiceError("TableNotFound")) from None
    except ServiceError as error:
        raise WriteRefusedError(0, error) from None


def _refused_part(call: Call, batch: BatchBody, refusal: WriteRefusedError) -> bytes:
    index, error = refusal.index, refusal.error
    head = batch.parts[index].head
    alone = len(batch.parts) == 1 and error.code in _WITHOUT_INDEX
    applied = preference_applied(read_preference(head.headers, call.version)) if head.method == "POST" else []
    return encode_part(_refusal(call, head, error, "" if alone else f"{index}:", applied), head.content_id)


def _refusal(call: Call, head: Head, error: ServiceError, prefix: str, applied: list[tuple[str, str]]) -> Response:
    wanted = format_for_error(call.version, head.headers, "")
    prefixed = ServiceError(error.code, f"{prefix}{error.message}", status=error.status)
    body = wanted.error(prefixed, call.request.id, call.context.time())
    return batch_error(error, wanted, body, applied)
