"""A session whose writes keep the entries of indexes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import UnionType
from typing import NamedTuple, TypeVar

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import Continuation, EntityKey, Kind, Operation, Properties, Stored
from lazulite_patterns.entities.conditions import QueryError
from lazulite_patterns.entities.errors import EntityValueError, SchemaError
from lazulite_patterns.entities.registry import Schemas
from lazulite_patterns.filters import Filter
from lazulite_patterns.indexes.check import IndexCheck
from lazulite_patterns.indexes.entries import ENTRY, Entry, outside
from lazulite_patterns.indexes.index import BoundIndex, Index, Place, bound, entry_or_none, obstacle
from lazulite_patterns.indexes.lookup import Copies, Hits, copies, hits
from lazulite_patterns.indexes.pointers import Change, PointerIndex
from lazulite_patterns.outcomes.errors import Absent, Conflict, Exists
from lazulite_patterns.outcomes.grace import ARRIVAL_SECONDS, GRACE_SECONDS
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.outcomes.ring import BIRTH, NO_ID, Ring
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import ALONE, Joined, Written
from lazulite_patterns.table.session import Session, kinds_of

E = TypeVar("E")


@dataclass(frozen=True)
class IndexedSession(Session[E]):
    """Makes the protocols of a table with indexes."""

    indexes: tuple[BoundIndex, ...] = ()
    queue: str | None = None

    @cached_property
    def pointers(self) -> PointerIndex:
        """The protocol of entries."""
        return PointerIndex(self.name, self.entries, self.policy, self.queue or "")

    @property
    def hidden(self) -> tuple[Filter, ...]:
        """Conditions that the rows which are entries do not fulfil."""
        inside = any(each.index.within_partition for each in self.indexes)
        rows = [each for each in self.indexes if not each.index.container]
        across = any(not each.index.within_partition and each.table == self.name for each in rows)
        entries = (*((outside("PartitionKey"),) if across else ()), *((outside("RowKey"),) if inside else ()))
        return (*super().hidden, *entries)

    def checks(self) -> Sequence[Check]:
        """Return what an audit examines: rows, entities and their entries."""
        return [*super().checks(), IndexCheck(self.pointers, self.indexes)]

    def entries(self, properties: Properties) -> frozenset[Entry]:
        """Return the entries of an entity."""
        key = EntityKey(str(properties["PartitionKey"]), str(properties["RowKey"]))
        found = (entry_or_none(each, key, properties) for each in self.indexes)
        return frozenset(each for each in found if each is not None)

    def fitting(self, planned: Planned) -> Planned:
        """Return a write whose entity has room for the id of its insert, too."""
        operation = planned.operation
        born = {BIRTH: NO_ID} if operation.kind in {Kind.INSERT, Kind.PUT} else {}
        super().fitting(planned._replace(operation=replace(operation, properties={**operation.properties, **born})))
        return planned

    def write(
        self, planned: Sequence[Planned], known: Sequence[Stored] = (), joined: Joined = ALONE
    ) -> Protocol[Written]:
        """Write entities of one partition, and their entries."""
        for each in planned:
            if any(key.startswith(f"{ENTRY}!") for key in each.operation.key):
                raise EntityValueError(f"{each.operation.key}: keys that begin with {ENTRY}! are those of entries")
            if each.operation.kind in {Kind.INSERT, Kind.PUT, Kind.REPLACE}:
                for index in self.indexes:  # A value without an entry is rejected here; `entries` would leave it out.
                    index.entry(each.operation.key, each.operation.properties)
        if not any(map(self._concerned, planned)):
            return (yield from super().write(planned, known, joined))
        one = len(planned) == 1
        changes: dict[EntityKey, Change] = {
            each.operation.key: self._change(each, None if one else number) for number, each in enumerate(planned)
        }
        written = yield from self.pointers.change_all(changes, known={each.key: each for each in known}, joined=joined)
        assert written is not None, "a delete of an absent entity raises Absent"
        return Written(written.etags[: len(planned)], written.operation_id)

    def _change(self, planned: Planned, number: int | None) -> Change:
        """Return a write as a function of the row that is there, which raises as the service would."""
        operation = planned.operation

        def change(base: Stored | None) -> Properties | None:
            if operation.kind is Kind.INSERT and base is not None:
                raise Exists(f"{operation.key} is there", number)
            if operation.kind in {Kind.REPLACE, Kind.MERGE, Kind.DELETE} and base is None:
                raise Absent(f"{operation.key} is absent", number)
            if base is not None and operation.etag not in {None, base.etag}:
                raise Conflict(f"{operation.key} was changed", number)
            if operation.kind is Kind.DELETE:
                return None
            if base is None:
                return operation.properties
            merged = {**base.properties, **operation.properties} if operation.kind is Kind.MERGE else None
            for index in self.indexes:
                if merged is not None and index.properties & operation.properties.keys():
                    self._check_entry(index, operation.key, merged)
            born = {name: value for name, value in base.properties.items() if name == BIRTH}
            replaced = Operation(Kind.REPLACE, operation.key, {**(merged or operation.properties), **born})
            return self.fitting(Planned(replaced, Ring.of(base.properties))).operation.properties

        return change

    @staticmethod
    def _check_entry(index: BoundIndex, key: EntityKey, properties: Properties) -> None:
        """Reject a value that no entry can have; a row of another class has no entry."""
        if found := obstacle(index, key, properties):
            raise EntityValueError(found)

    def _concerned(self, planned: Planned) -> bool:
        """Whether a write may change entries: all do, but merges of other properties."""
        if planned.operation.kind is not Kind.MERGE:
            return True
        return any(each.properties & set(planned.operation.properties) for each in self.indexes)


def session_of(
    name: str,
    kinds: type[E] | UnionType | None,
    policy: Policy,
    indexes: Sequence[Index],
    tables: Mapping[str, object],
    *,
    containers: Collection[str] = (),
    outbox: bool = False,
    queue: str | None = None,
) -> Session[E]:
    """Return the session of a table.

    Args:
        name: of the table.
        kinds: its classes; None for property bags.
        policy: deadlines and marks.
        indexes: of its entities.
        tables: the tables that there are clients of.
        containers: the containers that there are clients of.
        outbox: whether the table has rows of an outbox.
        queue: the name of the queue whose workers write eventual entries.

    Raises:
        SchemaError: an index fits no class.
        ValueError: an index is in a table without a client, or the deadline is near the grace.
    """
    stored_as: Schemas[E] | object = kinds_of(kinds)
    if not indexes:
        return Session(name, kinds_of(kinds), policy, outbox)
    if not isinstance(stored_as, Schemas) or stored_as.several:
        raise SchemaError("indexes are of a table with one class")
    if len({each.name for each in indexes}) < len(indexes):
        raise SchemaError("two indexes have the same name")
    if policy.deadline_seconds + ARRIVAL_SECONDS >= GRACE_SECONDS:
        raise ValueError(f"with indexes, the deadline is less than {GRACE_SECONDS - ARRIVAL_SECONDS} seconds")
    if absent := {each.table for each in indexes if each.table is not None} - set(tables):
        raise ValueError(f"there is no client of the table {min(absent)}: clients=[…]")
    if absent := {each.container for each in indexes} - {"", *containers}:
        raise ValueError(f"there is no client of the container {min(absent)}: clients=[…]")
    if queue is None and (without := [each.name for each in indexes if each.eventual]):
        raise ValueError(f"index {without[0]} is eventual, and there is no queue for its workers: queue=…")
    schema = stored_as.only
    return IndexedSession(name, stored_as, policy, outbox, tuple(bound(each, schema, name) for each in indexes), queue)


class Asked(NamedTuple):
    """What is looked up: an index, by the values of its first fields or of all.

    Attributes:
        name: of the index.
        values: of its first fields, or of all.
        prefix: whether the last value is only the beginning of a text.
        partition_key: of the entities, for an index within the partition.
    """

    name: str
    values: Sequence[object]
    prefix: bool = False
    partition_key: str | None = None


def look_up(session: Session[E], asked: Asked, go_on: Continuation | None) -> Protocol[Hits]:
    """Read a page of entities by an index.

    Raises:
        QueryError: there is no such index, or it cannot be asked so.
    """
    own, index, place = _place(session, asked)
    return (yield from hits(own.pointers, index, place, go_on))


def look_up_copies(session: Session[E], asked: Asked, go_on: Continuation | None) -> Protocol[Copies]:
    """Read a page of copies by an index.

    Raises:
        QueryError: there is no such index with copies, or it cannot be asked so.
    """
    own, index, place = _place(session, asked)
    if not index.index.copy:
        raise QueryError(f"index {asked.name} has no copies: copy=[…]")
    return (yield from copies(own.pointers, index, place, go_on))


def _place(session: Session[E], asked: Asked) -> tuple[IndexedSession[E], BoundIndex, Place]:
    indexes = session.indexes if isinstance(session, IndexedSession) else ()
    index = next((each for each in indexes if each.index.name == asked.name), None)
    if index is None or not isinstance(session, IndexedSession):
        raise QueryError(f"the table has no index {asked.name}")
    try:
        return session, index, index.place(asked.values, prefix=asked.prefix, partition_key=asked.partition_key)
    except ValueError as error:
        raise QueryError(str(error)) from error
