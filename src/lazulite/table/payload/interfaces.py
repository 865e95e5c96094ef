"""What every spelling of entities and tables can do: the operations know these two, and no more of a format."""

from collections.abc import Callable, Iterable
from typing import Protocol


class EntityWriter(Protocol):
    """Spells entities of one table for one request, from the values of their rows (table/model/row.py)."""

    @property
    def item(self) -> Callable[[bytes], bytes]:
        """Takes a row's value to what stands for it in a feed."""
        ...

    def entity(self, value: bytes) -> bytes:
        """Return the payload that one entity is."""
        ...

    def feed(self, items: Iterable[bytes]) -> bytes:
        """Return the payload of a page, from what `item` gave for each entity."""
        ...


class TableWriter(Protocol):
    """Spells tables for one request, from their names."""

    def table(self, name: str) -> bytes:
        """Return the payload that one table is."""
        ...

    def feed(self, names: Iterable[str]) -> bytes:
        """Return the payload of a page of tables."""
        ...
