# Generated from lazulite_patterns/aio/shapes/lookup.py. Do not edit this module: edit that one, and run `make twins`.
"""Entities that are looked up again and again, in memory, with a synchronous client."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.shapes.links import Ref
from lazulite_patterns.table.table import Table

T = TypeVar("T")
H = TypeVar("H")


class _CachedEntity(NamedTuple, Generic[T]):
    entity: T | None
    until_seconds: float


class Lookup(Generic[T]):
    """Reads entities by keys, and keeps them for some time: what a program joins to others by itself.

    What it returns is at most so many seconds old. Absent entities are kept, too. Entities are shared by all callers:
    change none of them.
    """

    def __init__(self, table: Table[T], *, seconds: float = 60, size: int = 10_000, workers: int = 32) -> None:
        """Take a table.

        Args:
            table: of the entities.
            seconds: how long an entity is kept.
            size: entities that are kept; the one that was not used for the longest time goes first.
            workers: reads at one time.
        """
        self._table = table
        self._seconds, self._size, self._workers = seconds, size, workers
        self._known: OrderedDict[EntityKey, _CachedEntity[T]] = OrderedDict()

    def get(self, key: EntityKey) -> T | None:
        """Return an entity; None if it is absent."""
        found = self.get_many([key])
        return found[0]

    def get_many(self, keys: Iterable[EntityKey]) -> list[T | None]:
        """Return entities in the order of keys; None for absent ones. Each one that is not known is read once."""
        wanted = list(keys)
        now = self._table.driver.runtime.clock()
        found: dict[EntityKey, T | None] = {}
        for key in dict.fromkeys(wanted):
            known = self._known.get(key)
            if known is not None and now < known.until_seconds:
                self._known[key] = self._known.pop(key, known)
                found[key] = known.entity
        missing = [key for key in dict.fromkeys(wanted) if key not in found]
        if missing:
            read = self._table.get_many(missing, workers=self._workers)
            for key, entity in zip(missing, read, strict=True):
                found[key] = entity
                self._keep(key, _CachedEntity(entity, now + self._seconds))
        return [found[key] for key in wanted]

    def join(self, holders: Sequence[H], ref: Ref[H, T]) -> list[tuple[H, T | None]]:
        """Return entities, each with the one that its link leads to; None if it has none, or an absent one."""
        keys = [ref.key(each) for each in holders]
        present = [each for each in keys if each is not None]
        found = dict(zip(present, self.get_many(present), strict=True))
        return [(each, None if key is None else found[key]) for each, key in zip(holders, keys, strict=True)]

    def forget(self, key: EntityKey) -> None:
        """Read an entity again the next time, as after a write of it."""
        self._known.pop(key, None)

    def _keep(self, key: EntityKey, known: _CachedEntity[T]) -> None:
        self._known.pop(key, None)
        self._known[key] = known
        while len(self._known) > self._size:
            self._known.popitem(last=False)
