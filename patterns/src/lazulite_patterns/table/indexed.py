"""A session whose writes keep the entries of indexes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import UnionType
from typing import NamedTuple, TypeVar

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import Continuation, EntityKey, Kind, Operation, Properties, Stored
from lazulite_patterns.entities.conditions import Condition, QueryError, comparisons
from lazulite_patterns.entities.errors import EntityValueError, SchemaError
from lazulite_patterns.entities.registry import Schemas
from lazulite_patterns.filters import Filter
from lazulite_patterns.indexes.check import IndexCheck
from lazulite_patterns.indexes.entries import ENTRY, Entry, outside
from lazulite_patterns.indexes.errors import NotUnique
from lazulite_patterns.indexes.index import BoundIndex, IndexRange, bound, entry_or_none, obstacle
from lazulite_patterns.indexes.lookup import Copies, LookupPage, copies, hits
from lazulite_patterns.indexes.pointers import Change, PointerIndex
from lazulite_patterns.outcomes.errors import Absent, Conflict, Exists
from lazulite_patterns.outcomes.grace import ARRIVAL_SECONDS, GRACE_SECONDS
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.outcomes.ring import BIRTH, NO_ID, WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import ALONE, Joined, Written
from lazulite_patterns.table.session import OnError, Session, indexes_of, key_of, kinds_of

E = TypeVar("E")


@dataclass(frozen=True)
class IndexedSession(Session[E]):
    """Makes the protocols of a table with indexes."""

    indexes: tuple[BoundIndex, ...] = ()
    queue: str | None = None

    def __post_init__(self) -> None:
        """Take classes with indexes: these protocols keep them."""

    @cached_property
    def pointers(self) -> PointerIndex:
        """The protocol of entries."""
        return PointerIndex(self.name, self.entries, self.policy, self.queue or "", self._not_unique)

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

    def _not_unique(self, entry: Entry, owner: EntityKey, properties: Properties) -> NotUnique:
        """Return the error for a unique entry that an entity has."""
        index = next(each for each in self.indexes if entry_or_none(each, owner, properties) == entry)
        return index.not_unique(owner, properties)

    def claims(self, properties: Properties) -> dict[Entry, str]:
        """Return the entries that no other entity may have, each with the columns that it is of."""
        key = key_of(properties)
        unique = [each for each in self.indexes if each.index.unique]
        found = ((entry_or_none(each, key, properties), each.columns) for each in unique)
        return {entry: columns for entry, columns in found if entry is not None}

    def fitting(self, planned: Planned) -> Planned:
        """Return a write whose entity has room for the id of its insert, too."""
        operation = planned.operation
        born = {BIRTH: NO_ID} if operation.kind in {Kind.INSERT, Kind.PUT, Kind.PUT_MERGE} else {}
        super().fitting(planned._replace(operation=replace(operation, properties={**operation.properties, **born})))
        return planned

    def write(
        self, planned: Sequence[Planned], known: Sequence[Stored] = (), joined: Joined = ALONE
    ) -> Protocol[Written]:
        """Write entities of one partition, and their entries."""
        for each in planned:
            if any(key.startswith(f"{ENTRY}!") for key in each.operation.key):
                raise EntityValueError(f"{each.operation.key}: keys that begin with {ENTRY}! are those of entries")
            if each.operation.kind not in {Kind.MERGE, Kind.DELETE}:
                for index in self.indexes:  # A value without an entry is rejected here; `entries` would leave it out.
                    self._check_entry(index, each.operation.key, each.operation.properties)
        if not any(map(self._concerned, planned)):
            return (yield from super().write(planned, known, joined))
        one = len(planned) == 1
        changes: dict[EntityKey, Change] = {
            each.operation.key: self._change(each, None if one else number) for number, each in enumerate(planned)
        }
        written = yield from self.pointers.change_all(changes, known={each.key: each for each in known}, joined=joined)
        assert written is not None, "a delete of an absent entity raises Absent"
        return Written(written.etags[: len(planned) + len(joined.planned)], written.operation_id)

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
            merges = operation.kind in {Kind.MERGE, Kind.PUT_MERGE}
            merged = {**base.properties, **operation.properties} if merges else None
            for index in self.indexes:
                if merged is not None and index.properties & operation.properties.keys():
                    self._check_entry(index, operation.key, merged)
            born = {name: value for name, value in base.properties.items() if name == BIRTH}
            replaced = Operation(Kind.REPLACE, operation.key, {**(merged or operation.properties), **born})
            return self.fitting(Planned(replaced, WriteIds.of(base.properties))).operation.properties

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
    kinds: type[E] | UnionType,
    policy: Policy,
    *,
    tables: Collection[str] = (),
    containers: Collection[str] = (),
    queues: Collection[str] = (),
    outbox: bool = False,
    on_error: OnError | None = None,
) -> Session[E]:
    """Return the session of a table, which keeps the indexes that its classes declare.

    Args:
        name: of the table.
        kinds: its classes; `Bag` for property bags.
        policy: deadlines and marks.
        tables: the tables that there are clients of.
        containers: the containers that there are clients of.
        queues: the queues that there are clients of.
        outbox: whether the table has rows of an outbox.
        on_error: what is called for a row of a query that no class can read.

    Raises:
        SchemaError: an index fits no class.
        ValueError: an index needs a client that is not there, or the deadline is near the grace.
    """
    stored_as = kinds_of(kinds)
    indexes = indexes_of(stored_as)
    if not indexes or not isinstance(stored_as, Schemas):
        return Session(name, stored_as, policy, outbox, on_error=on_error)
    if len({each.name for each in indexes}) < len(indexes):
        raise SchemaError("two indexes have the same name")
    if policy.deadline_seconds + ARRIVAL_SECONDS >= GRACE_SECONDS:
        raise ValueError(f"with indexes, the deadline is less than {GRACE_SECONDS - ARRIVAL_SECONDS} seconds")
    if len(queue := {each.queue for each in indexes} - {None}) > 1:
        raise SchemaError("the indexes of a table have one queue")
    for kind, needed, there in (
        ("table", {each.table for each in indexes} - {None, name}, tables),
        ("container", {each.container for each in indexes} - {""}, containers),
        ("queue", queue, queues),
    ):
        if absent := needed - set(there):
            raise ValueError(f"there is no client of the {kind} {min(map(str, absent))}: clients=[…]")
    every = tuple(bound(index, schema, name) for schema in stored_as.all for index in schema.indexes)
    if len({(each.index, each.layout) for each in every}) > len(indexes):
        raise SchemaError("the classes of a table store a column of an index in different ways")
    return IndexedSession(name, stored_as, policy, outbox, every, next(iter(queue), None), on_error=on_error)


class LookupRequest(NamedTuple):
    """What is looked up: entities by the values of columns that an index begins with.

    Attributes:
        values: of the columns.
        prefix: the column of which the value is only the beginning of a text; empty for none.
        classes: those of the conditions.
        index_name: that of the index; None for any.
    """

    values: Mapping[str, object]
    prefix: str = ""
    classes: frozenset[type] = frozenset()
    index_name: str | None = None

    @classmethod
    def of(
        cls, conditions: Sequence[Condition], fields: Mapping[str, object], index: str | None = None
    ) -> "LookupRequest":
        """Return what conditions and the values of columns ask.

        Raises:
            QueryError: an index cannot be asked so.
        """
        values, prefix = dict(fields), ""
        compared = [one for each in conditions for one in comparisons(each)]
        for each in compared:
            if each not in conditions or each.operator not in {"eq", "starts with"} or each.field in values or prefix:
                raise QueryError("an index is asked for values of its columns, and for the beginning of the last one")
            values[each.field] = each.value
            prefix = each.field if each.operator == "starts with" else ""
        return cls(values, prefix, frozenset(each.cls for each in compared), index)


def look_up(session: Session[E], asked: LookupRequest, continuation: Continuation | None) -> Protocol[LookupPage]:
    """Read a page of entities by an index.

    Raises:
        QueryError: there is no such index, or it cannot be asked so.
    """
    own, index, place = placed(session, asked)
    return (yield from hits(own.pointers, index, place, continuation))


def look_up_copies(session: Session[E], asked: LookupRequest, continuation: Continuation | None) -> Protocol[Copies]:
    """Read a page of copies by an index.

    Raises:
        QueryError: there is no such index with copies, or it cannot be asked so.
    """
    own, index, place = placed(session, asked, copied=True)
    return (yield from copies(own.pointers, index, place, continuation))


def placed(
    session: Session[E], asked: LookupRequest, *, copied: bool = False
) -> tuple[IndexedSession[E], BoundIndex, IndexRange]:
    """Return the index that has what is asked, and where its entries are: the one with the fewest columns.

    Args:
        session: of the table.
        asked: what is looked up.
        copied: whether the entries must have copies.

    Raises:
        QueryError: there is no such index, or it cannot be asked so.
    """
    fitting = [
        each for each in getattr(session, "indexes", ()) if _fits(each, asked) and (each.index.copy or not copied)
    ]
    if not fitting or not isinstance(session, IndexedSession):
        what = "with copies " if copied else ""
        raise QueryError(f"the table has no index {what}that begins with {', '.join(asked.values)}")
    index = min(fitting, key=lambda each: len(each.index.fields))
    names = [name for name, _ in index.index.fields if name in asked.values]
    try:
        key = index.schema.partition_key(asked.values) if index.index.within_partition else None
        values = [asked.values[name] for name in names]
        return session, index, index.place(values, prefix=bool(asked.prefix), partition_key=key)
    except ValueError as error:
        raise QueryError(str(error)) from error


def _fits(index: BoundIndex, asked: LookupRequest) -> bool:
    """Tell whether an index begins with the columns that are asked; within a partition, those of its key are, too."""
    names = [name for name, _ in index.index.fields]
    given = [name for name in names if name in asked.values]
    others = asked.values.keys() - set(given)
    parts = index.schema.partition_parts if index.index.within_partition else frozenset[str]()
    named = asked.index_name in {None, index.index.name} and asked.classes <= set(index.schema.cls.__mro__)
    begins = named and bool(given) and names[: len(given)] == given and others == parts - set(given)
    return begins and asked.prefix in {"", given[-1]}
