"""The interfaces of the serializers of entities and tables: the only part of a format that the operations know."""

from collections.abc import Callable, Iterable
from typing import Protocol

from lazulite.protocol.steps import Steps
from lazulite.table.payload.feed import FeedFrame


class EntityWriter(Protocol):
    """Serializes entities of one table for one request, from the values of their rows (table/model/row.py)."""

    @property
    def item(self) -> Callable[[bytes], bytes]:
        """From a row's value to its item of a feed."""
        ...

    def entity(self, value: bytes) -> bytes:
        """Return the payload of a single entity."""
        ...

    def item_steps(self, value: bytes) -> Steps[bytes]:
        """Return the item of a row, for a large row in several steps."""
        ...

    def entity_steps(self, value: bytes) -> Steps[bytes]:
        """Return the payload of a single entity, for a large row in several steps."""
        ...

    def feed(self, *, empty: bool) -> FeedFrame:
        """Return the payload of a page without the item of each entity; `empty`: it will have none."""
        ...


class TableWriter(Protocol):
    """Serializes tables for one request, from their names."""

    def table(self, name: str) -> bytes:
        """Return the payload of a single table."""
        ...

    def feed(self, names: Iterable[str]) -> bytes:
        """Return the payload of a page of tables."""
        ...
