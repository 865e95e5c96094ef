"""The entries that rows have in indexes, and how a change of rows changes them.

Invariants: an entity has one entry in an index if it has the first property, and none otherwise. A change of an entity
that leaves the properties of an index as they are changes nothing in that index.

So the row before a change tells what its entries were, and a commit need not read them. An index that is not built yet
may lack one. If a commit on it is undone, it gets the entry that the row has then.
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
from lazulite.table.model.property_reader import literal_reader
from lazulite.table.model.row import Property

ENTRY = b""
"""The value of each entry: its key says everything."""

_Literals = Sequence[Property | None]
"""The properties of an index as a row has them."""
_NO_ROW: _Literals = (None,)


def values_reader(on: Sequence[str]) -> Callable[[bytes], str | None]:
    """Return a function that reads the encoded values of an index out of a row; None: it has no entry."""
    read = _literals_reader(on)
    return lambda row: _encoded(read(row))


def _literals_reader(on: Sequence[str]) -> Callable[[bytes], _Literals]:
    readers = list(map(literal_reader, on))
    if len(readers) == 1:
        [only] = readers
        return lambda row: (only(row),)
    return lambda row: tuple([read(row) for read in readers])


def _encoded(literals: _Literals) -> str | None:
    """Return the encoded values of an index; None: there is no entry."""
    if literals[0] is None:
        return None
    return "".join([encode_value(None if each is None else each.edm.decode(each.literal)) for each in literals])


class IndexMaintenance:
    """Keeps the entries of some indexes of a table, as rows change.

    Args:
        indexes: those of one table, whatever their states.
    """

    __slots__ = ("_kept",)

    def __init__(self, indexes: Sequence[Index]) -> None:
        self._kept = [
            (
                index.space,
                _literals_reader(index.on),
                entry_in_table if index.scope is Scope.TABLE else entry_in_partition,
            )
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
                literals = _NO_ROW if old is None else read(old)
                literals_now = _NO_ROW if value is None else read(value)
                if literals == literals_now:  # As they mostly are: then nothing is encoded.
                    continue
                was, now = _encoded(literals), _encoded(literals_now)
                if was == now:
                    continue
                if was is not None:
                    yield CompanionWrite(space, entry(was, (partition, row)), None, ENTRY)
                if now is not None:
                    yield CompanionWrite(space, entry(now, (partition, row)), ENTRY, None)


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
