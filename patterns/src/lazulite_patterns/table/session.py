"""What a table's protocols know: the client's name, the classes, the policy."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from types import UnionType
from typing import Generic, Literal, NamedTuple, TypeVar, cast

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Read, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError, SchemaError
from lazulite_patterns.entities.indexes import Index
from lazulite_patterns.entities.registry import Schemas
from lazulite_patterns.entities.rows_read import attach_row, stored_of
from lazulite_patterns.filters import Filter, in_range
from lazulite_patterns.indexes.entries import Entry
from lazulite_patterns.indexes.errors import Busy, NotUnique
from lazulite_patterns.outcomes.errors import Absent, Conflict
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.outcomes.ring import MOVING, NO_ID, RING, WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import ALONE, Joined, Written, write
from lazulite_patterns.table.check import RowCheck
from lazulite_patterns.table.inbox import INBOX, is_inbox
from lazulite_patterns.table.outbox import OUTBOX, OUTBOX_ROWS, OutboxCheck

E = TypeVar("E")
OnConflict = Literal["rebase", "raise"]
OnError = Callable[[Stored, EntityFormatError], None]


class Changed(NamedTuple, Generic[E]):
    """An entity that `update` wrote, and the outcome of the write."""

    entity: E
    written: Written


@dataclass(frozen=True)
class Session(Generic[E]):
    """Makes the protocols of one table. The classes `Table`, synchronous and asynchronous, run them."""

    name: str
    kinds: Schemas[E] | Bags
    policy: Policy
    outbox: bool = False
    """Whether the table has rows of an outbox."""
    on_error: OnError | None = field(default=None, kw_only=True)
    """What is called for a row of a query that no class can read; None lets the query raise."""

    def __post_init__(self) -> None:
        """Reject classes whose indexes these protocols would not keep.

        Raises:
            SchemaError: a class has an index.
        """
        if declared := indexes_of(self.kinds):
            raise SchemaError(f"index {declared[0].name}: this pattern keeps no indexes; `Table` does")

    @property
    def hidden(self) -> tuple[Filter, ...]:
        """Conditions of each query: rows that are no entities do not fulfil them."""
        return (~in_range("RowKey", OUTBOX_ROWS),) if self.outbox else ()

    def checks(self) -> Sequence[Check]:
        """Return what an audit examines."""
        outbox = [OutboxCheck(self.name, self.policy)] if self.outbox else []
        return [RowCheck(self.name, self.kinds, self.hidden), *outbox]

    def claims(self, properties: Properties) -> dict[Entry, str]:  # noqa: ARG002
        """Return the entries that no other entity may have, each with the columns that it is of."""
        return {}

    def get(self, key: E | EntityKey) -> Protocol[E | None]:
        """Read an entity; None if it is absent."""
        found = yield from self.stored(self.key(key))
        return None if found is None else self.decode(found)

    def stored(self, key: EntityKey) -> Protocol[Stored | None]:
        """Read a row; None if it is absent."""
        return (yield from read(Read(self.name, key), (yield from begin(self.policy))))

    def insert(self, entity: E) -> Protocol[Written]:
        """Write an entity that must be absent."""
        return self.write([self.planned(Kind.INSERT, entity)])

    def upsert(self, entity: E) -> Protocol[Written]:
        """Write an entity, whatever is there."""
        return self.write([self.planned(Kind.PUT, entity)])

    def insert_or_merge(self, entity: E) -> Protocol[Written]:
        """Write an entity; properties that it does not have stay as they are there."""
        return self.write([self.planned(Kind.PUT_MERGE, entity)])

    def replace(self, entity: E) -> Protocol[Written]:
        """Write an entity that was read, if the row is still the one that was read."""
        return self.write([self.planned(Kind.REPLACE, entity)])

    def merge(self, key: E | EntityKey, fields: Mapping[str, object]) -> Protocol[Written]:
        """Write some fields of an entity that is there."""
        return self.write([self.merging(key, fields)])

    def delete(self, key: E | EntityKey) -> Protocol[bool]:
        """Delete an entity; an entity that was read only if the row is still the one. False if it is absent."""
        try:
            yield from self.write([self.deleting(key)])
        except Absent:
            return False
        return True

    def update(
        self,
        key: E | EntityKey,
        change: Callable[[E], E],
        attempts: int,
        on_conflict: OnConflict,
        remove: Sequence[str] = (),
    ) -> Protocol[Changed[E]]:
        """Read an entity, change it and write it back, again if another program was faster."""
        place = self.key(key)
        if keys := limits.SYSTEM & set(remove):
            raise EntityValueError(f"{place}.{min(keys)}: an update cannot remove it")
        for number in range(attempts):
            found = yield from self.stored(place)
            if found is None:
                raise Absent(f"{place} is absent")
            changed = change(self.decode(found))
            planned = self.replacing(changed, found, remove)
            if planned.operation.key != place:
                raise ValueError(f"{place}: an update cannot change the keys")
            try:
                written = yield from self.write([planned], [found])
                return Changed(self._as_written(changed, planned, written), written)
            except (Absent, NotUnique, Busy):
                raise
            except Conflict:
                if on_conflict == "raise" or number == attempts - 1:
                    raise
        raise ValueError("attempts is at least 1")

    def _as_written(self, entity: E, planned: Planned, written: Written) -> E:
        """Return an entity with the row that it is now, as if it had been read; with none if the ETag is not known."""
        etag = written.etags[0]
        properties = dict(planned.operation.properties)
        if self.policy.marks:
            properties[RING] = planned.ring(written.operation_id, self.policy.marks).text
        return cast(E, attach_row(copy(entity), Stored(properties, etag) if etag else None))

    def write(
        self,
        planned: Sequence[Planned],
        known: Sequence[Stored] = (),  # noqa: ARG002
        joined: Joined = ALONE,
    ) -> Protocol[Written]:
        """Write entities of one partition. `known` are rows that were read for it, `joined` what is written, too."""
        if self.outbox and any(each.operation.key.row_key in OUTBOX_ROWS for each in planned):
            raise EntityValueError(f"row keys that begin with {OUTBOX}! are those of the outbox")
        if any(is_inbox(each.operation.key.row_key) for each in planned):
            raise EntityValueError(f"row keys that begin with {INBOX}! are those of moves")
        attempts = yield from begin(self.policy)
        yield from joined.check()
        return (yield from write(self.name, [*planned, *joined.planned], self.policy, attempts, joined.identity))

    def planned(self, kind: Kind, entity: E) -> Planned:
        """Return the write of a whole entity. A replacement is conditional: the entity must have been read."""
        if kind is Kind.REPLACE:
            base = _base(entity)
            self._check_keys(entity, base)
            return self.replacing(entity, base)
        properties = self.encode(entity)
        return self.fitting(Planned(Operation(kind, key_of(properties), properties)))

    def replacing(self, entity: E, base: Stored, remove: Sequence[str] = ()) -> Planned:
        """Return the replacement of a row. Properties that the entity's class does not know stay, but for some."""
        moving = {name: value for name, value in base.properties.items() if name == MOVING}
        properties = {**self.unknown(entity, base), **self.encode(entity), **moving}
        kept = {name: value for name, value in properties.items() if name not in remove}
        return self.fitting(
            Planned(Operation(Kind.REPLACE, key_of(kept), kept, base.etag), WriteIds.of(base.properties))
        )

    def merging(self, key: E | EntityKey, fields: Mapping[str, object], *, conditional: bool = False) -> Planned:
        """Return the merge of fields into an entity that is there; conditional if it must be the one that was read."""
        place = self.key(key)
        properties = self.kinds.partial(key, fields)
        limits.check(str(place), {**properties, "PartitionKey": place.partition_key, "RowKey": place.row_key})
        if not conditional:
            return self.fitting(Planned(Operation(Kind.MERGE, place, properties)))
        base = _base(key)
        merge = Operation(Kind.MERGE, place, properties, base.etag)
        return self.fitting(Planned(merge, WriteIds.of(base.properties)))

    def deleting(self, key: E | EntityKey) -> Planned:
        """Return the delete of an entity: conditional if it is one that was read."""
        base = None if isinstance(key, EntityKey) else stored_of(key)
        if base is None:
            return Planned(Operation(Kind.DELETE, self.key(key)))
        self._check_keys(key, base)
        return Planned(Operation(Kind.DELETE, base.key, etag=base.etag), WriteIds.of(base.properties))

    def _check_keys(self, entity: E | EntityKey, base: Stored) -> None:
        """Reject an entity whose keys are others than when it was read: its version is that of another row.

        Raises:
            EntityValueError: they are.
        """
        if (key := self.key(entity)) != base.key:
            raise EntityValueError(f"{key} was read as {base.key}: delete that one by its keys, and insert this one")

    def fitting(self, planned: Planned) -> Planned:
        """Return a write whose entity has room for the ids of its writes, too.

        Raises:
            EntityValueError: the service would reject the entity with them.
        """
        if self.policy.marks:
            operation = planned.operation
            keys = {"PartitionKey": operation.key.partition_key, "RowKey": operation.key.row_key}
            ids = {RING: planned.ring(NO_ID, self.policy.marks).text}
            limits.check_size(f"{operation.key} with {RING}", {**operation.properties, **keys, **ids})
        return planned

    def key(self, entity: E | EntityKey) -> EntityKey:
        """Return keys, or those of an entity.

        Raises:
            EntityValueError: no row of the service can have them.
        """
        key = entity if isinstance(entity, EntityKey) else self.kinds.of(entity).key(entity)
        limits.check_key("key", key)
        return key

    def encode(self, entity: E) -> dict[str, object]:
        """Return the properties of an entity."""
        return self.kinds.of(entity).encode(entity)

    def decode(self, stored: Stored) -> E:
        """Return the entity of a row."""
        return cast(E, self.kinds.decode(stored))

    def decoded(self, found: Iterable[Stored]) -> Iterator[E]:
        """Yield the entities of rows that a query found. Rows that no class can read are left to `on_error`."""
        for each in found:
            try:
                entity = self.decode(each)
            except EntityFormatError as error:
                if self.on_error is None:
                    raise
                self.on_error(each, error)
            else:
                yield entity

    def unknown(self, entity: E, base: Stored) -> dict[str, object]:
        """Return the properties of a row that the entity's class does not know."""
        return self.kinds.of(entity).unknown(base.properties)


def key_of(properties: Mapping[str, object]) -> EntityKey:
    """Return the keys of properties."""
    return EntityKey(str(properties["PartitionKey"]), str(properties["RowKey"]))


def kinds_of(kinds: type[E] | UnionType | None) -> Schemas[E] | Bags:
    """Return how the entities of a table are stored: by their classes, or as bags."""
    return Bags() if kinds is None or kinds is Bag else Schemas(kinds)


def indexes_of(kinds: Schemas[E] | Bags) -> list[Index]:
    """Return the indexes that classes declare; each once, though several classes inherit it."""
    return list(dict.fromkeys(index for each in getattr(kinds, "all", ()) for index in each.indexes))


def _base(entity: object) -> Stored:
    """Return the row that an entity was read from."""
    if (found := stored_of(entity)) is None:
        raise ValueError("only an entity that was read can be replaced; see `upsert` and `update`")
    return found
