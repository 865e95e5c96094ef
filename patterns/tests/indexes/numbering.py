"""Versions of items in the models of lists: one for each put, in the order of the process."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from typing import TypeVar

from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Properties
from lazulite_patterns.indexes import lists
from lazulite_patterns.indexes.entries import NO_INTENT, EntriesOf, Entry
from lazulite_patterns.indexes.lists import Change, Item
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes import Policy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""When every item is put."""


class Numbering(PointerIndex):
    """Numbers the versions of its items: fewer states are different than with ids."""

    process = 0
    numbers: Iterator[int]

    def __init__(self, table: str, entries: EntriesOf, policy: Policy) -> None:
        super().__init__(table, entries, policy)
        object.__setattr__(self, "numbers", count(1))

    def _put(self, entry: Entry, key: EntityKey, intent: Properties = NO_INTENT) -> Protocol[str | None]:
        if not entry.listed:
            return (yield from super()._put(entry, key, intent))
        found = yield from lists.rows(entry, self.policy)
        version = f"{int(NOW.timestamp())}.{self.process}.{next(self.numbers)}"
        yield from lists.apply(entry, Change(put=(Item(*key, version, lists.written(intent)),)), self.policy, found)
        return None


N = TypeVar("N", bound=Numbering)


def of_process(kind: type[N], process: int) -> type[N]:
    """Return the class for a process, which makes an instance for each run."""
    return type(kind.__name__, (kind,), {"process": process})
