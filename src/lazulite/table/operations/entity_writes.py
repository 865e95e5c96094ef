"""Insert, replace, merge, the two upserts and delete: from a request to a decision, and to its response.

A write is prepared (everything that needs no stored state is checked), then applied to the stored row inside the
engine's commit; then its response is made. A batch prepares many, applies them in one commit and makes the response of
each by the same functions.
Source: reference §9.
"""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import NamedTuple

from lazulite.engine.contract import UNKNOWN
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.protocol.steps import Steps, finish
from lazulite.protocol.template import KEY, Answer, HeadValues, Miss, PendingAnswer
from lazulite.service.routing import Keys, PreparedOperation
from lazulite.table.call import Call, metered_table
from lazulite.table.catalog import Table
from lazulite.table.etag_condition import is_condition, read_condition, reject_conditions, require_condition
from lazulite.table.model.entity import MALFORMED, EncodedEntity
from lazulite.table.model.row import assemble, encode_keys, etag_of, stored_etag
from lazulite.table.names import check_new_key
from lazulite.table.operations.write_decisions import (
    INSERT,
    EntityWrite,
    Write,
    apply_one,
)
from lazulite.table.payload.formats import Format, Preference, read_preference
from lazulite.table.payload.interfaces import EntityWriter
from lazulite.table.payload.links import linked_key, row_link
from lazulite.table.responses import (
    LOCATION_LINES,
    created_opening,
    entity_opening,
    no_content_opening,
    preference_applied,
)
from lazulite.table.versions import UPSERT_SINCE

SMALL_BYTES = 4096
"""A body of so many bytes is read in one short step, whatever it is."""


class InsertResponse(NamedTuple):
    """The response of an insert, as far as its request's head settles it."""

    wanted: Format
    preference: Preference | None
    opening: str
    """Its first fields."""


class ValidatedWrite:
    """A write whose request's head is validated: the part that all requests with that head share.

    Attributes:
        call: the request.
        kind: the kind of write.
        condition: from its If-Match.
        opening: the first fields of the response, but for an insert.
        reader: of the body; None for a delete.
        patterns: of the bodies of its table.
        limits_keys: whether the key decides on the permission.
    """

    __slots__ = (
        "_insert_response",
        "_metered",
        "call",
        "condition",
        "kind",
        "limits_keys",
        "opening",
        "patterns",
        "reader",
    )

    def __init__(self, call: Call, kind: Write) -> None:
        """Validate the head.

        Raises:
            ServiceError: 400 or 415.
        """
        self.call = call
        self.kind = kind
        self._insert_response: InsertResponse | None = None
        self.condition = self.condition_of(call.request)
        if kind.deletes or (kind.must_exist is None and call.version < UPSERT_SINCE):
            require_condition(self.condition, call.resource.table)
        self.reader = None if kind.deletes else call.reader()
        self.opening = "" if kind is INSERT else no_content_opening(call)
        self.limits_keys = call.has_key_range
        self.patterns = call.context.patterns.of(call.account, call.resource.table)
        meter = call.context.meter
        self._metered = None if meter is None else (meter, metered_table(call))

    def note(self, write: EntityWrite, body_bytes: int) -> None:
        """Count a write that goes to the store, given the bytes of its body."""
        if self._metered is not None:
            meter, table = self._metered
            meter.note(table, write.partition_key, (0, 0, 1, body_bytes, 0, 1, 0))
            if meter.recording is not None:
                meter.recording.note_write(table, write.partition_key, (write.row_key,), meter.now)

    def note_echo(self, write: EntityWrite, response: Response) -> None:
        """Count the entity that a response holds."""
        if self._metered is not None:
            meter, table = self._metered
            meter.note(table, write.partition_key, (0, 0, 0, 0, len(response.body), 0, 0))

    def condition_of(self, request: Request) -> str | None:
        """Return the condition that a request's If-Match states.

        Raises:
            ServiceError: 400.
        """
        if self.kind is not INSERT:
            return read_condition(request.headers, self.call.method)
        reject_conditions(request.headers)
        return None

    def insert_response(self) -> InsertResponse:
        """Return the response of an insert, whose format and preference are validated after the body.

        Raises:
            ServiceError: 400 or 415.
        """
        if self._insert_response is None:
            call = self.call
            wanted = call.format()
            preference = read_preference(call.request.headers, call.version)
            if preference is Preference.NO_CONTENT:
                opening = created_opening(call)
            else:
                applied = "".join(f"{name}: {value}\r\n" for name, value in preference_applied(preference))
                opening = entity_opening(call, wanted) + applied
            self._insert_response = InsertResponse(wanted, preference, opening)
        return self._insert_response

    def echo_writer(self) -> EntityWriter:
        """Return what spells the entity of an insert in its response."""
        return self.call.entity_writer(self.insert_response().wanted)


def prepare_usual(validated: ValidatedWrite, body: bytes, keys: Keys, condition: str | None) -> EntityWrite | None:
    """Do what `prepare` does in one short step, for a body that matches a pattern. Return None for every other body.

    Raises:
        ServiceError: 400, 403 or 415.
    """
    kind, reader = validated.kind, validated.reader
    entity = None if reader is None else reader.usual(validated.patterns, body, kind is not INSERT)
    if entity is None:
        return None
    partition_key, row_key, stored_keys, members = entity
    preference = None
    if kind is INSERT:
        wanted, preference, _ = validated.insert_response()
        if wanted.check is not None and preference is not Preference.NO_CONTENT:
            return None
    else:
        partition_key, row_key = keys
        stored_keys = encode_keys(partition_key, row_key)
    if validated.limits_keys:
        validated.call.require_key(partition_key, row_key)
    return EntityWrite(kind, partition_key, row_key, condition, stored_keys, members, preference)


def prepare_now(validated: ValidatedWrite, body: bytes, keys: Keys, condition: str | None) -> EntityWrite | None:
    """Do what `prepare` does in one short step. Return None for a body that matches no pattern and is not small.

    Raises:
        ServiceError: 400, 403 or 415.
    """
    write = prepare_usual(validated, body, keys, condition)
    return finish(prepare(validated, body, keys, condition)) if write is None and len(body) <= SMALL_BYTES else write


def prepare(validated: ValidatedWrite, body: bytes, keys: Keys, condition: str | None) -> Steps[EntityWrite]:
    """Check everything about a write that needs no stored state, in steps.

    Args:
        validated: the head of its request.
        body: of its request.
        keys: of the addressed entity; those of an insert are in its body.
        condition: from its If-Match.

    Raises:
        ServiceError: 400, 403 or 415.
    """
    call, kind, reader = validated.call, validated.kind, validated.reader
    preference = None
    encoded = ""
    if kind is INSERT:
        assert reader is not None, "not a delete"
        entity = yield from reader.encoded(body, False, validated.patterns)
        encoded = entity.members
        keys = partition_key, row_key = _new_keys(entity)
        wanted, preference, _ = validated.insert_response()
        if wanted.check is not None and preference is not Preference.NO_CONTENT:
            yield from wanted.check(partition_key, row_key, (yield from reader.entity(body)).properties)
    # Keys in the body of an update are ignored (*unverified*): the URL rules.
    elif reader is not None:
        encoded = (yield from reader.encoded(body, True, validated.patterns)).members
    partition_key, row_key = keys
    call.require_key(partition_key, row_key)
    stored_keys = encode_keys(partition_key, row_key)
    return EntityWrite(kind, partition_key, row_key, condition, stored_keys, encoded, preference)


def _new_keys(entity: EncodedEntity) -> tuple[str, str]:
    partition_key, row_key = entity.partition_key, entity.row_key
    if partition_key is None or row_key is None:
        raise ServiceError("PropertiesNeedValue")
    if not entity.keys_are_strings:
        # *Unverified*: the code; recorded is the status.
        raise ServiceError("InvalidInput", MALFORMED)
    check_new_key("PartitionKey", partition_key)
    check_new_key("RowKey", row_key)
    return partition_key, row_key


class WriteEntity:
    """Prepares writes of one kind, each by itself.

    Args:
        kind: the kind.
    """

    def __init__(self, kind: Write) -> None:
        self.kind = kind

    def __call__(self, call: Call) -> "SingleWrite":
        """Return the write of a call. Raises as `SingleWrite`."""
        return SingleWrite(call, self.kind)


class SingleWrite(PreparedOperation):
    """A write by itself, of one kind in one table.

    Args:
        call: one of its requests.
        kind: the kind.

    Raises:
        ServiceError: 400 or 415.
    """

    __slots__ = ("_account", "_call", "_table", "_validated")

    def __init__(self, call: Call, kind: Write) -> None:
        self._call = call
        self._account, self._table = call.account, call.resource.table
        self._validated = ValidatedWrite(call, kind)

    @property
    def lasts(self) -> bool:
        """See `PreparedOperation`: not if the key decides on the permission."""
        return not self._call.has_key_range

    @property
    def has_templates(self) -> bool:
        """See `PreparedOperation`: not where rows are a round trip away."""
        return self._call.context.engine.commits_now

    def repeated(self, names: Sequence[str]) -> "RepeatedWrite":
        """See `PreparedOperation`."""
        return RepeatedWrite(self._validated, names)

    async def respond(self, request: Request, keys: Keys) -> Response:
        """See `PreparedOperation`: a write waits until it is durable."""
        validated, call = self._validated, self._call
        condition = validated.condition_of(request)
        write = prepare_usual(validated, request.body, keys, condition)
        if write is None:
            write = await call.time_slice().run(prepare(validated, request.body, keys, condition))
        catalog, account, name = call.context.catalog, self._account, self._table
        table = catalog.cached(account, name) or await catalog.require_table(account, name)
        gate = call.context.gate
        if gate is None:
            timestamp = await self._commit(request, table, write)
        else:
            charge = call.charge_at(table, write.partition_key)._replace(size=len(request.body), writes=True)
            timestamp = await gate.run(charge, call.record, partial(self._commit, request, table, write))
        response = ready_response(validated, write, timestamp)
        if response is None:
            response = await call.time_slice().run(respond(validated, write, timestamp))
            validated.note_echo(write, response)
        return response

    def _commit(self, request: Request, table: Table, write: EntityWrite) -> Awaitable[int]:
        """Begin a write; return its timestamp, once it is durable."""
        self._validated.note(write, len(request.body))  # What is rejected now costs the store as much.
        write.indexes = table.indexes
        return self._call.context.engine.commit(table.space, write.partition_key, apply_one(write))


class RepeatedWrite:
    """A write by itself, for templates. Implements `RepeatedOperation`.

    Args:
        validated: the head.
        names: of the values.
    """

    __slots__ = ("_condition_at", "_key_count", "_validated")
    waits = True

    def __init__(self, validated: ValidatedWrite, names: Sequence[str]) -> None:
        self._validated = validated
        self._key_count = names.count(KEY)
        self._condition_at = names.index("if-match") if "if-match" in names else None

    def answer(self, values: HeadValues, body: bytes, later: PendingAnswer | None) -> Miss | None:
        """See `RepeatedOperation`."""
        validated, at = self._validated, self._condition_at
        condition = None if at is None else values[at].decode("ascii")
        if condition is not None and not is_condition(condition):
            return Miss.VALUES
        keys = tuple([key.decode("ascii") for key in values[: self._key_count]])
        context = validated.call.context
        table = context.catalog.cached(validated.call.account, validated.call.resource.table)
        try:
            write = prepare_now(validated, body, keys, condition)
        except ServiceError:
            return Miss.OPERATION
        if table is None or write is None:
            return Miss.OPERATION
        assert later is not None, "it waits"
        write.indexes = table.indexes
        pending = PendingWrite(validated, write, later)
        timestamp = context.engine.commit_now(table.space, write.partition_key, apply_one(write), pending)
        if timestamp is UNKNOWN:
            return Miss.OPERATION
        pending.timestamp = timestamp
        validated.note(write, len(body))
        return None


class PendingWrite:
    """A write that has joined a commit group. Implements `Waiter`."""

    __slots__ = ("_later", "_validated", "_write", "timestamp")

    def __init__(self, validated: ValidatedWrite, write: EntityWrite, later: PendingAnswer) -> None:
        self._validated = validated
        self._write = write
        self._later = later
        self.timestamp = 0

    def done(self) -> bool:
        """See `Waiter`."""
        return False

    def set_result(self, _: None) -> None:
        """Answer: the write is durable."""
        response = ready_response(self._validated, self._write, self.timestamp)
        if response is None:
            response = finish(respond(self._validated, self._write, self.timestamp))
            self._validated.note_echo(self._write, response)
        self._later.answer(Answer(response.status, response.opening, response.body))

    def set_exception(self, exception: BaseException) -> None:
        """Reject: the write may not be durable."""
        self._later.fail(exception)


def respond(validated: ValidatedWrite, write: EntityWrite, timestamp: int) -> Steps[Response]:
    """Make the response of a write that was applied at `timestamp`, in steps."""
    response = ready_response(validated, write, timestamp)
    if response is None:
        status, opening = opening_of(validated, write, _etag(write, timestamp), linked_key(write.row_key))
        body = yield from validated.echo_writer().entity_steps(row_of(write, timestamp))
        response = Response(status, [], body, opening=opening)
    return response


def ready_response(validated: ValidatedWrite, write: EntityWrite, timestamp: int) -> Response | None:
    """Return the response of a write that was applied at `timestamp`, if it is without an entity."""
    if write.echoes:
        return None
    status, opening = opening_of(validated, write, _etag(write, timestamp), linked_key(write.row_key))
    return Response(status, opening=opening)


def opening_of(validated: ValidatedWrite, write: EntityWrite, etag: str, row: str) -> tuple[int, str]:
    """Return the status and the first fields of a response, given the row key as an address has it."""
    if write.kind.deletes:
        return 204, validated.opening
    if write.kind is not INSERT:
        return 204, f"{validated.opening}ETag: {etag}\r\n"
    call = validated.call
    location = call.address.base + row_link(call.resource.table, write.partition_key, row)
    opening = validated.insert_response().opening
    if write.echoes:
        return 201, f"{opening}Location: {location}\r\nETag: {etag}\r\n"
    return 204, f"{opening}{LOCATION_LINES.format(location)}ETag: {etag}\r\n"


def row_of(write: EntityWrite, timestamp: int) -> bytes:
    """Return the row that an insert has left."""
    return write.result or assemble(timestamp, write.keys, write.encoded)


def _etag(write: EntityWrite, timestamp: int) -> str:
    # A row that this process has made holds the text, which costs less than to format it.
    return stored_etag(write.result) if write.result else etag_of(timestamp)
