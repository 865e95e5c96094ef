"""The entries that rows have in indexes, and how a change of rows changes them.

Invariants: an entity has one entry in an index if it has the first property, and none otherwise. A change of an entity
that leaves the properties of an index as they are changes nothing in that index.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from lazulite.engine.commit import CompanionWrite
from lazulite.engine.contract import Key
from lazulite.records.spaces import IndexFormat
from lazulite.table.indexes.definition import Index, Indexes, Scope, State
from lazulite.table.indexes.encoding import (
    encode_value,
    end_of_values,
    entity_of,
    entry_in_partition,
    entry_in_table,
)
from lazulite.table.model.property_reader import property_reader

ENTRY = b""
"""The value of each entry: its key says everything."""

ValuesReader = Callable[[bytes], str | None]


def values_reader(on: Sequence[str]) -> ValuesReader:
    """Return a function that reads the encoded values of an index out of a row; None: it has no entry."""
    first, *others = map(property_reader, on)

    def read(row: bytes) -> str | None:
        value = first(row)
        if value is None:
            return None
        values = encode_value(value)
        for other in others:
            values += encode_value(other(row))
        return values

    return read


class IndexMaintenance:
    """Keeps the entries of some indexes of a table, as rows change.

    Args:
        indexes: those of one table, whatever their states.
    """

    __slots__ = ("_kept",)

    def __init__(self, indexes: Sequence[Index]) -> None:
        self._kept = [
            (index.space, values_reader(index.on), entry_in_table if index.scope is Scope.TABLE else entry_in_partition)
            for index in indexes
        ]

    def changes(
        self, partition: str, before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]
    ) -> Iterator[CompanionWrite]:
        """Yield what changes in the indexes when rows of a partition change.

        Args:
            partition: of the rows.
            before: the rows before; None: absent.
            after: the rows that change; None: deleted.
        """
        for row, value in after.items():
            old = before[row]
            for space, read, entry in self._kept:
                was = None if old is None else read(old)
                now = None if value is None else read(value)
                if was == now:
                    continue
                if was is not None:
                    yield CompanionWrite(space, entry(was, (partition, row)), None)
                if now is not None:
                    yield CompanionWrite(space, entry(now, (partition, row)), ENTRY)


@lru_cache(maxsize=256)
def maintenance_of(indexes: Indexes) -> IndexMaintenance:
    """Return what keeps the entries of the indexes of a table."""
    return IndexMaintenance(indexes.declared)


def index_format(index: Index) -> IndexFormat:
    """Return how the entries of an index are verified."""
    read = values_reader(index.on)
    in_table = index.scope is Scope.TABLE
    entry_of = entry_in_table if in_table else entry_in_partition

    def verify(key: Key, value: bytes) -> None:
        if value != ENTRY:
            raise ValueError(f"an entry of index {index.name} has a value")
        partition, row = entity_of(key, len(index.on), in_table=in_table)
        values = key[0] if in_table else key[1][: end_of_values(key[1], len(index.on))]
        if entry_of(values, (partition, row)) != key:
            raise ValueError(f"an entry of index {index.name} is not as Lazulite writes it")

    def entry(key: Key, value: bytes) -> Key | None:
        values = read(value)
        return None if values is None else entry_of(values, key)

    return IndexFormat(index.space, index.name, verify, entry, index.state is State.READY)
