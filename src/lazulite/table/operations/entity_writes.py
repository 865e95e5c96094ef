"""Insert, replace, merge, the two upserts and delete: from a request to a decision, and to its answer.

A write is prepared (everything that needs no stored state is checked), then applied to the stored row inside the
engine's commit, then answered. A batch prepares many, applies them in one commit and answers each: the same functions.
Source: reference §9.
"""

from collections.abc import Mapping

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.protocol.steps import Steps
from lazulite.table.call import Call
from lazulite.table.etag_condition import read_condition, refuse_conditions, require_condition
from lazulite.table.model.entity import MALFORMED, EncodedEntity
from lazulite.table.model.row import Property, assemble, encode_keys, encode_properties, etag_of, in_order
from lazulite.table.names import check_new_key
from lazulite.table.operations.write_decisions import (
    DELETE,
    INSERT,
    INSERT_OR_MERGE,
    INSERT_OR_REPLACE,
    MERGE,
    REPLACE,
    WRITES,
    ApplyOne,
    EntityWrite,
    Write,
)
from lazulite.table.payload.formats import Format
from lazulite.table.payload.links import entity_link
from lazulite.table.payload.negotiation import Preference, read_preference
from lazulite.table.resource import Kind
from lazulite.table.responses import created_without_content, entity_answer, no_content, preference_applied
from lazulite.table.versions import UPSERT_SINCE

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


def prepare(intent: Intent, body: bytes) -> Steps[EntityWrite]:
    """Check everything about a write that needs no stored state, in steps.

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
        entity = yield from reader.encoded(body, False)
        encoded = entity.members
        partition_key, row_key = _new_keys(entity)
        wanted, preference = intent.wish()
        if wanted.check is not None and preference is not Preference.NO_CONTENT:
            wanted.check(partition_key, row_key, (yield from reader.entity(body)).properties)
    # Keys in the body of an update are not compared with the URL's (*unverified*): the URL rules.
    elif kind.merges:
        assert reader is not None, "not a delete"
        properties = in_order((yield from reader.entity(body)).properties)
        encoded = encode_properties(properties)
    elif reader is not None:
        encoded = (yield from reader.encoded(body, True)).members
    call.require_key(partition_key, row_key)
    keys = encode_keys(partition_key, row_key)
    return EntityWrite(kind, partition_key, row_key, intent.condition, properties, keys, encoded, preference)


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


async def write_entity(call: Call, kind: Write) -> Response:
    """Run one write by itself.

    Raises:
        ServiceError: every refusal of the operation.
    """
    write = await call.turn().through(prepare(Intent(call, kind), call.request.body))
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
