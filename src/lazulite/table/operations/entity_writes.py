"""Insert, replace, merge, the two upserts and delete: one table of six rows, and what they share.

A write is prepared (everything that needs no stored state is checked), then applied to the stored row inside the
engine's commit, then answered. A batch prepares many, applies them in one commit and answers each: the same functions.
Source: reference §9.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.engine.foresight import Expect, Foreseeing, Foreseen
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.grant import Requirement
from lazulite.protocol.message import Response
from lazulite.protocol.version import UPSERT_SINCE
from lazulite.table.answers import created_without_content, entity_answer, no_content, preference_applied
from lazulite.table.call import Call
from lazulite.table.condition import (
    ANY,
    check_condition,
    read_condition,
    refuse_conditions,
    require_condition,
    ticks_meant,
)
from lazulite.table.entity import check_limits
from lazulite.table.names import check_new_key
from lazulite.table.payload.formats import Format
from lazulite.table.payload.links import entity_link
from lazulite.table.payload.media import Preference, read_preference
from lazulite.table.resource import Kind
from lazulite.table.row import (
    Property,
    assemble,
    decode_row,
    encode_keys,
    encode_properties,
    etag_of,
    in_order,
    ticks_of,
)


class Write(NamedTuple):
    """What one kind of write needs and does."""

    operation: str
    """Its name in logs."""
    requirement: Requirement
    must_exist: bool | None
    """True: a missing entity is a 404. False: an existing one is a 409. None: either will do."""
    merges: bool = False
    deletes: bool = False


def _needs(letters: str) -> Requirement:
    return Requirement("o", (letters,), letters)


INSERT = Write("InsertEntity", _needs("a"), must_exist=False)
REPLACE = Write("UpdateEntity", _needs("u"), must_exist=True)
MERGE = Write("MergeEntity", _needs("u"), must_exist=True, merges=True)
INSERT_OR_REPLACE = Write("InsertOrReplaceEntity", _needs("au"), must_exist=None)
INSERT_OR_MERGE = Write("InsertOrMergeEntity", _needs("au"), must_exist=None, merges=True)
DELETE = Write("DeleteEntity", _needs("d"), must_exist=True, deletes=True)
WRITES = (INSERT, REPLACE, MERGE, INSERT_OR_REPLACE, INSERT_OR_MERGE, DELETE)

_WRITES: dict[tuple[Kind, str, bool], Write] = {
    (Kind.ENTITIES, "POST", False): INSERT,
    (Kind.ENTITIES, "POST", True): INSERT,
    (Kind.ENTITY, "PUT", False): INSERT_OR_REPLACE,
    (Kind.ENTITY, "PUT", True): REPLACE,
    (Kind.ENTITY, "MERGE", False): INSERT_OR_MERGE,
    (Kind.ENTITY, "MERGE", True): MERGE,
    (Kind.ENTITY, "PATCH", False): INSERT_OR_MERGE,
    (Kind.ENTITY, "PATCH", True): MERGE,
    (Kind.ENTITY, "DELETE", False): DELETE,
    (Kind.ENTITY, "DELETE", True): DELETE,
}
WRITE_NAMES = frozenset(write.operation for write in WRITES)


def find_write(call: Call) -> Write | None:
    """Return the kind of write that a call asks for by its method and its If-Match; None if it is no write."""
    return _WRITES.get((call.resource.kind, call.method, "if-match" in call.request.headers))


@dataclass(slots=True)
class EntityWrite:
    """A write ready to be applied. `result` is the row it left, if it was applied in this process."""

    kind: Write
    partition_key: str
    row_key: str
    condition: str | None
    properties: Mapping[str, Property]
    keys: str
    encoded: str
    preference: Preference | None = None
    """What an insert answers with."""
    result: bytes | None = None

    def apply(self, current: bytes | None, stamp: int) -> bytes | None:
        """Return what the row becomes (None: deleted), given what it is and the commit's stamp.

        Raises:
            ServiceError: `ResourceNotFound`, `EntityAlreadyExists`, `UpdateConditionNotSatisfied`, or a limit that the
                merged entity breaks. Existence is judged before the condition, as the service does.
        """
        kind = self.kind
        if current is None:
            if kind.must_exist:
                raise ServiceError("ResourceNotFound")
        elif kind.must_exist is False:
            raise ServiceError("EntityAlreadyExists")
        else:
            check_condition(self.condition, ticks_of(current))
        if kind.deletes:
            self.result = None
            return None
        self.result = assemble(stamp, self.keys, self._encoded_over(current))
        return self.result

    def _encoded_over(self, current: bytes | None) -> str:
        """Return the entity's members as they become.

        Raises:
            ServiceError: a limit that the merged entity breaks.
        """
        if current is None or not self.kind.merges:
            return self.encoded
        merged = in_order({**decode_row(current).properties, **self.properties})
        check_limits(self.partition_key, self.row_key, merged)
        return encode_properties(merged)

    def foresee(self) -> Foreseen | None:
        """Return what the entity should be for this write to need nothing of it; None if it must be seen."""
        kind = self.kind
        if kind.merges:
            return None
        if not kind.must_exist:
            return Foreseen(Expect.ANYTHING if kind.must_exist is None else Expect.ABSENT)
        if self.condition is None or self.condition == ANY:
            return Foreseen(Expect.PRESENT, kind.deletes)
        stamp = ticks_meant(self.condition)
        return None if stamp is None else Foreseen(Expect.PRESENT, kind.deletes, stamp)

    def seen(self, current: bytes | None) -> "Merged | None":
        """Return what a merge comes to, having seen the entity; None if it would be refused, or is no merge."""
        if not self.kind.merges or (current is None and self.kind.must_exist):
            return None
        try:
            stamp = None if current is None else ticks_of(current)
            if stamp is not None:
                check_condition(self.condition, stamp)
            encoded = self._encoded_over(current)
        except ServiceError:
            return None
        expects = Expect.ABSENT if current is None else Expect.PRESENT
        return Merged(Foreseen(expects, stamp=stamp), self.keys, encoded)

    def blind(self, stamp: int) -> bytes | None:
        """Return what the entity becomes if it is as foreseen, at the commit's stamp."""
        self.result = None if self.kind.deletes else assemble(stamp, self.keys, self.encoded)
        return self.result


class WriteRefusedError(Exception):
    """One write of several is refused; `index` says which."""

    def __init__(self, index: int, error: ServiceError) -> None:
        super().__init__(index)
        self.index = index
        self.error = error


@dataclass(frozen=True, slots=True)
class Merged(Foreseeing):
    """A merge that has seen its entity, or that there is none."""

    foreseen: Foreseen
    keys: str
    encoded: str

    def foresee(self) -> Foreseen:
        """See `Foreseeing`."""
        return self.foreseen

    def value(self, stamp: int) -> bytes:
        """See `Foreseeing`."""
        return assemble(stamp, self.keys, self.encoded)


@dataclass(frozen=True, slots=True)
class ApplyOne(Foreseeing):
    """A `Decide`: apply one write to its row."""

    write: EntityWrite

    def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        """See `Decide`. Raises what `EntityWrite.apply` raises."""
        return {self.write.row_key: self.write.apply(current[0], stamp)}

    def foresee(self) -> Foreseen | None:
        """See `Foreseeing`."""
        return self.write.foresee()

    def seen(self, current: bytes | None) -> Merged | None:
        """See `Foreseeing`."""
        return self.write.seen(current)

    def value(self, stamp: int) -> bytes | None:
        """See `Foreseeing`."""
        return self.write.blind(stamp)


@dataclass(frozen=True, slots=True)
class ApplyAll:
    """A `Decide`: apply writes, each to its row, or refuse all of them."""

    writes: Sequence[EntityWrite]

    def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        """See `Decide`.

        Raises:
            WriteRefusedError: one of them is refused, the first in their order.
        """
        changes: dict[str, bytes | None] = {}
        for index, (write, value) in enumerate(zip(self.writes, current, strict=True)):
            try:
                changes[write.row_key] = write.apply(value, stamp)
            except ServiceError as error:
                raise WriteRefusedError(index, error) from None
        return changes


class Intent:
    """A write as far as the head of its request tells: what all requests with that head share.

    Attributes:
        call: the request.
        kind: the kind of write.
        condition: from its If-Match.
    """

    __slots__ = ("_wish", "call", "condition", "kind", "reader")

    def __init__(self, call: Call, kind: Write) -> None:
        """Check what can be checked before there is a body.

        Raises:
            ServiceError: 400, 403 or 415.
        """
        self.call = call
        self.kind = kind
        self._wish: tuple[Format, Preference | None] | None = None
        call.request.operation = kind.operation
        call.authorize(kind.requirement)
        headers = call.request.headers
        self.condition = None
        if kind is INSERT:
            refuse_conditions(headers)
        else:
            self.condition = read_condition(headers, call.method)
        if kind.deletes or (kind.must_exist is None and call.version < UPSERT_SINCE):
            require_condition(self.condition, call.resource.table)
        self.reader = None if kind.deletes else call.reader()

    def wish(self) -> tuple[Format, Preference | None]:
        """Return what an insert should answer with, which is looked at after the body.

        Raises:
            ServiceError: 400 or 415.
        """
        if self._wish is None:
            self._wish = self.call.format(), read_preference(self.call.request.headers, self.call.version)
        return self._wish


def prepare(intent: Intent, body: bytes) -> EntityWrite:
    """Check everything about a write that needs no stored state.

    Raises:
        ServiceError: 400, 403 or 415.
    """
    call, kind, reader = intent.call, intent.kind, intent.reader
    partition_key, row_key = call.resource.partition_key, call.resource.row_key
    preference = None
    properties: Mapping[str, Property] = {}
    encoded = ""
    if kind is INSERT:
        assert reader is not None, "not a delete"
        entity = reader.encoded(body, False)
        encoded = entity.members
        partition_key, row_key = _new_keys(entity.partition_key, entity.row_key)
        wanted, preference = intent.wish()
        if wanted.check is not None and preference is not Preference.NO_CONTENT:
            wanted.check(partition_key, row_key, reader.entity(body).properties)
    # Keys in the body of an update are not compared with the URL's (*unverified*): the URL rules.
    elif kind.merges:
        assert reader is not None, "not a delete"
        properties = in_order(reader.entity(body).properties)
        encoded = encode_properties(properties)
    elif reader is not None:
        encoded = reader.encoded(body, True).members
    call.require_key(partition_key, row_key)
    keys = encode_keys(partition_key, row_key)
    return EntityWrite(kind, partition_key, row_key, intent.condition, properties, keys, encoded, preference)


def _new_keys(partition_key: str | None, row_key: str | None) -> tuple[str, str]:
    if partition_key is None or row_key is None:
        raise ServiceError("PropertiesNeedValue")
    check_new_key("PartitionKey", partition_key)
    check_new_key("RowKey", row_key)
    return partition_key, row_key


async def write_entity(call: Call, kind: Write) -> Response:
    """Run one write by itself.

    Raises:
        ServiceError: every refusal of the operation.
    """
    write = prepare(Intent(call, kind), call.request.body)
    catalog, account, name = call.context.catalog, call.account, call.resource.table
    table = catalog.known(account, name) or await catalog.require(account, name)
    stamp = await call.context.engine.commit(table.space, write.partition_key, [write.row_key], ApplyOne(write))
    return answer(call, write, stamp)


def answer(call: Call, write: EntityWrite, stamp: int) -> Response:
    """Return the response of a write that was applied at `stamp`."""
    if write.kind.deletes:
        return no_content(call)
    etag = ("ETag", etag_of(stamp))
    if write.kind is not INSERT:
        return no_content(call, etag)
    table = call.resource.table
    location = call.address.base + entity_link(table, write.partition_key, write.row_key)
    if write.preference is Preference.NO_CONTENT:
        return created_without_content(call, location, etag)
    wanted = call.format()
    body = call.entity_writer(wanted).entity(write.result or assemble(stamp, write.keys, write.encoded))
    return entity_answer(call, 201, wanted, body, [*preference_applied(write.preference), ("Location", location), etag])
