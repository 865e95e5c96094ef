# Generated from lazulite_patterns/aio/query.py. Do not edit this module: edit that one, and run `make twins`.
"""A query of a table, with a synchronous client."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.tables import Continuation
from lazulite_patterns.table import reading
from lazulite_patterns.table.plan import Kind, Plan
from lazulite_patterns.table.reading import Items
from lazulite_patterns.table.session import Session

E = TypeVar("E")


class Query(Generic[E]):
    """Entities that fulfil conditions. Nothing is read until one of the methods is called, or it is iterated over."""

    def __init__(self, driver: Driver, session: Session[E], plan: Plan) -> None:
        """Take what `Table.where` made."""
        self._driver = driver
        self._session = session
        self.plan = plan

    @property
    def kind(self) -> Kind:
        """What the service has to read."""
        return self.plan.kind

    def __iter__(self) -> Iterator[E]:
        """Read the entities, page by page."""
        go_on: Continuation | None = None
        name, policy = self._session.name, self._session.policy
        while True:
            found = self._driver.run(reading.fetch(name, self.plan, policy, None, go_on))
            for each in found.entities:
                yield self._session.decode(each)
            if (go_on := found.continuation) is None:
                return

    def page(self, size: int, after: str | None = None) -> Items[E]:
        """Return a page, and the cursor of the next one, which any process may use later.

        Args:
            size: entities; fewer only on the last page, which may be empty.
            after: the cursor of the page before; None for the first page.

        Raises:
            QueryError: it is no cursor of this query, or the size is less than 1.
        """
        reading.check_size(size)
        go_on = reading.continuation_of(self.plan, after)
        found = self._driver.run(reading.first(self._session.name, self.plan, self._session.policy, size, go_on))
        items = reading.decoded(found.entities, self._session.decode)
        return Items(items, reading.cursor_of(self.plan, found.continuation))

    def first(self, count: int) -> list[E]:
        """Return the first entities in the order of keys, as many as there are."""
        return [] if count < 1 else (self.page(count)).items

    def exists(self) -> bool:
        """Tell whether there is such an entity."""
        query = self.plan.selecting(("PartitionKey", "RowKey"))
        found = self._driver.run(reading.first(self._session.name, query, self._session.policy, 1))
        return bool(found.entities)

    def count(self) -> int:
        """Count the entities. The service cannot: it sends their keys."""
        return self._driver.run(reading.count(self._session.name, self.plan, self._session.policy))

    def properties(self, *names: str) -> Iterator[Mapping[str, object]]:
        """Read some properties of each entity, by the names that they have in the table."""
        query = self.plan.selecting(names)
        go_on: Continuation | None = None
        while True:
            found = self._driver.run(reading.fetch(self._session.name, query, self._session.policy, None, go_on))
            for each in found.entities:
                yield each.properties
            if (go_on := found.continuation) is None:
                return
