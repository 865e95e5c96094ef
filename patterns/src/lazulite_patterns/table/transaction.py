"""Writes of one partition, collected and then sent in one transaction: all of them are done, or none."""

from typing import Generic, TypeVar

from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import Written
from lazulite_patterns.table.session import Session

E = TypeVar("E")
OPERATIONS_MAX = 100


class Transaction(Generic[E]):
    """The writes of a `with` block. They are sent at its end, unless it raises.

    Attributes:
        written: the outcome, after the block; None if there was nothing to write.
        operations_max: the most writes of one.
    """

    operations_max = OPERATIONS_MAX

    def __init__(self, session: Session[E], partition_key: str | None) -> None:
        """Begin without a write."""
        self._session = session
        self._partition_key = partition_key
        self._planned: dict[EntityKey, Planned] = {}
        self.written: Written | None = None

    def insert(self, entity: E) -> None:
        """Write an entity that must be absent."""
        self._add(self._session.planned(Kind.INSERT, entity))

    def upsert(self, entity: E) -> None:
        """Write an entity, whatever is there."""
        self._add(self._session.planned(Kind.PUT, entity))

    def insert_or_merge(self, entity: E) -> None:
        """Write an entity; properties that it does not have stay as they are there."""
        self._add(self._session.planned(Kind.PUT_MERGE, entity))

    def replace(self, entity: E) -> None:
        """Write an entity that was read, if the row is still the one that was read."""
        self._add(self._session.planned(Kind.REPLACE, entity))

    def update(self, entity: E, /, **fields: object) -> None:
        """Write some fields of an entity that was read, if the row is still the one that was read."""
        self._add(self._session.merging(entity, fields, conditional=True))

    def merge(self, key: E | EntityKey, /, **fields: object) -> None:
        """Write some fields of an entity that must be there."""
        self._add(self._session.merging(key, fields))

    def delete(self, key: E | EntityKey) -> None:
        """Delete an entity that must be there; one that was read only if the row is still the one."""
        self._add(self._session.deleting(key))

    @property
    def planned(self) -> list[Planned]:
        """The writes until now, for a protocol that sends them with its own."""
        return list(self._planned.values())

    def commit(self) -> Protocol[None]:
        """Send the writes."""
        if self._planned:
            self.written = yield from self._session.write(self.planned)

    def _add(self, planned: Planned) -> None:
        key = planned.operation.key
        if self._partition_key is None:
            self._partition_key = key.partition_key
        if key.partition_key != self._partition_key:
            raise ValueError(f"{key} is not in the partition {self._partition_key!r} of the transaction")
        if key in self._planned:
            raise ValueError(f"{key} is written twice in one transaction")
        if len(self._planned) == self.operations_max:
            raise ValueError(f"a transaction has {self.operations_max} operations at most")
        self._planned[key] = planned
