"""Rows grouped by partition, in bounded memory.

A group closes when it is full: at a hundred entities, or at 4 MiB as they are sent. When memory is full, the largest
groups close early; so do groups whose first row was long ago, as a resumed load begins with the oldest row.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lazulite_patterns.bulk.sizes import FRAME, operation_octets
from lazulite_patterns.effects.changesets import BYTES_MAX
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.outcomes.verdict import Planned

_KEPT = 0.75
"""The part of memory that stays in use when groups close early."""
_STALE = 4
"""A group closes early if its first row was read before as many times the rows that fit into memory."""


class Row(NamedTuple):
    """A row of the source: its number from 0, and its write."""

    number: int
    planned: Planned
    octets: int

    @classmethod
    def of(cls, number: int, planned: Planned) -> "Row":
        """Return a row with its size."""
        return cls(number, planned, operation_octets(planned.operation.key, planned.operation.properties))

    @property
    def key(self) -> EntityKey:
        """The keys of the row."""
        return self.planned.operation.key


class Group:
    """Rows of one partition that are sent in one transaction. No key is in it twice."""

    def __init__(self) -> None:
        """Begin without rows."""
        self.rows: dict[EntityKey, Row] = {}
        self.octets = FRAME

    def takes(self, row: Row, entities_max: int) -> bool:
        """Tell whether a row can be sent with the others."""
        return row.key not in self.rows and len(self.rows) < entities_max and self.octets + row.octets <= BYTES_MAX

    def add(self, row: Row) -> None:
        """Add a row."""
        self.rows[row.key] = row
        self.octets += row.octets

    @property
    def first_number(self) -> int:
        """The number of the first row, which is the earliest one."""
        return next(iter(self.rows.values())).number


class Groups:
    """The groups that are open."""

    def __init__(self, entities_max: int, buffer_entities: int, buffer_octets: int) -> None:
        """Take the limits: of a transaction, and of memory."""
        self._entities_max = entities_max
        self._buffer_entities = buffer_entities
        self._buffer_octets = buffer_octets
        self._open: dict[str, Group] = {}
        self.entities = 0
        self.octets = 0

    def add(self, row: Row) -> list[Group]:
        """Add a row; return the groups that close by it."""
        closed = []
        partition_key = row.key.partition_key
        group = self._open.get(partition_key)
        if group is not None and not group.takes(row, self._entities_max):
            closed.append(self._close(partition_key))
            group = None
        if group is None:
            group = self._open[partition_key] = Group()
        group.add(row)
        self.entities += 1
        self.octets += row.octets
        if len(group.rows) == self._entities_max:
            closed.append(self._close(partition_key))
        if self.entities > self._buffer_entities or self.octets > self._buffer_octets:
            closed += self._shrink(row.number)
        return closed

    def close(self) -> list[Group]:
        """Close all groups, and return them."""
        return [self._close(partition_key) for partition_key in list(self._open)]

    @property
    def opened(self) -> Iterable[Group]:
        """The groups that are open, the one with the earliest row first."""
        return self._open.values()

    def _shrink(self, number: int) -> Iterator[Group]:
        stale = number - _STALE * self._buffer_entities
        by_need = sorted(
            self._open, key=lambda each: (self._open[each].first_number >= stale, -len(self._open[each].rows))
        )
        for each in by_need:
            fits = self.entities <= self._buffer_entities * _KEPT and self.octets <= self._buffer_octets * _KEPT
            if fits and self._open[each].first_number >= stale:
                return
            yield self._close(each)

    def _close(self, partition_key: str) -> Group:
        group = self._open.pop(partition_key)
        self.entities -= len(group.rows)
        self.octets -= sum(each.octets for each in group.rows.values())
        return group
