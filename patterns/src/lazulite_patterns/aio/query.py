"""A query of a table, with an asynchronous client."""

from collections.abc import AsyncIterator, Mapping
from typing import Generic, TypeVar

from lazulite_patterns.aio.driver import Driver
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

    async def __aiter__(self) -> AsyncIterator[E]:
        """Read the entities, page by page."""
        go_on: Continuation | None = None
        name, policy = self._session.name, self._session.policy
        while True:
            found = await self._driver.run(reading.fetch(name, self.plan, policy, None, go_on))
            for each in found.entities:
                yield self._session.decode(each)
            if (go_on := found.continuation) is None:
                return

    async def page(self, size: int, after: str | None = None) -> Items[E]:
        """Return a page, and the cursor of the next one, which any process may use later.

        Args:
            size: entities; fewer only on the last page, which may be empty.
            after: the cursor of the page before; None for the first page.

        Raises:
            QueryError: it is no cursor of this query, or the size is less than 1.
        """
        reading.check_size(size)
        go_on = reading.continuation_of(self.plan, after)
        found = await self._driver.run(reading.first(self._session.name, self.plan, self._session.policy, size, go_on))
        items = reading.decoded(found.entities, self._session.decode)
        return Items(items, reading.cursor_of(self.plan, found.continuation))

    async def first(self, count: int) -> list[E]:
        """Return the first entities in the order of keys, as many as there are."""
        return [] if count < 1 else (await self.page(count)).items

    async def exists(self) -> bool:
        """Tell whether there is such an entity."""
        query = self.plan.selecting(("PartitionKey", "RowKey"))
        found = await self._driver.run(reading.first(self._session.name, query, self._session.policy, 1))
        return bool(found.entities)

    async def count(self) -> int:
        """Count the entities. The service cannot: it sends their keys."""
        return await self._driver.run(reading.count(self._session.name, self.plan, self._session.policy))

    async def properties(self, *names: str) -> AsyncIterator[Mapping[str, object]]:
        """Read some properties of each entity, by the names that they have in the table."""
        query = self.plan.selecting(names)
        go_on: Continuation | None = None
        while True:
            found = await self._driver.run(reading.fetch(self._session.name, query, self._session.policy, None, go_on))
            for each in found.entities:
                yield each.properties
            if (go_on := found.continuation) is None:
                return
