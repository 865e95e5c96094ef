"""Queries of a table by conditions and by indexes, with an asynchronous client."""

from collections.abc import AsyncIterator, Mapping
from typing import Generic, TypeVar

from lazulite_patterns.aio.driver import Driver
from lazulite_patterns.effects.tables import Continuation
from lazulite_patterns.indexes.lookup import FieldCopies
from lazulite_patterns.table import reading
from lazulite_patterns.table.indexed import LookupRequest, look_up, look_up_copies, placed
from lazulite_patterns.table.plan import Plan, Reads
from lazulite_patterns.table.reading import Items
from lazulite_patterns.table.session import Session

E = TypeVar("E")


class Query(Generic[E]):
    """Entities that fulfil conditions, as `Table.where` returns them.

    Nothing is read until one of the methods is called, or it is iterated over.
    """

    def __init__(self, driver: Driver, session: Session[E], plan: Plan) -> None:
        """Take what `Table.where` made."""
        self._driver = driver
        self._session = session
        self.plan = plan

    @property
    def reads(self) -> Reads:
        """What the service has to read."""
        return self.plan.reads

    async def __aiter__(self) -> AsyncIterator[E]:
        """Read the entities, page by page."""
        continuation: Continuation | None = None
        name, policy = self._session.name, self._session.policy
        while True:
            found = await self._driver.run(reading.fetch(name, self.plan, policy, None, continuation))
            for each in self._session.decoded(found.entities):
                yield each
            if (continuation := found.continuation) is None:
                return

    async def one(self) -> E:
        """Return the only entity.

        Raises:
            NotOne: there is none, or there are several.
        """
        return reading.only(await self.first(2))

    async def one_or_none(self) -> E | None:
        """Return the only entity; None if there is none.

        Raises:
            NotOne: there are several.
        """
        found = await self.first(2)
        return reading.only(found) if found else None

    async def page(self, size: int, after: str | None = None) -> Items[E]:
        """Return a page, and the cursor of the next one, which any process may use later.

        Args:
            size: entities that a class can read; fewer only on the last page, which may be empty.
            after: the cursor of the page before; None for the first page.

        Raises:
            QueryError: it is no cursor of this query, or the size is less than 1.
        """
        reading.check_size(size)
        name, policy = self._session.name, self._session.policy
        continuation = reading.continuation_of(self.plan, after)
        items: list[E] = []
        while True:  # More than once only if rows were left to `on_error`: they are no part of the page.
            found = await self._driver.run(reading.first(name, self.plan, policy, size - len(items), continuation))
            items += self._session.decoded(found.entities)
            continuation = found.continuation
            if len(items) == size or continuation is None:
                return Items(items, reading.cursor_of(self.plan, continuation))

    async def first(self, count: int) -> list[E]:
        """Return the first entities in the order of keys, as many as there are."""
        return [] if count < 1 else (await self.page(count)).items

    async def exists(self) -> bool:
        """Tell whether there is such an entity, by keys: a row that no class can read is one, too."""
        query = self.plan.selecting(("PartitionKey", "RowKey"))
        found = await self._driver.run(reading.first(self._session.name, query, self._session.policy, 1))
        return bool(found.entities)

    async def count(self) -> int:
        """Count the entities, by the keys that the service sends: rows that no class can read are counted, too."""
        return await self._driver.run(reading.count(self._session.name, self.plan, self._session.policy))

    async def properties(self, *names: str) -> AsyncIterator[Mapping[str, object]]:
        """Read some properties of each entity, by the names that they have in the table."""
        query = self.plan.selecting(names)
        continuation: Continuation | None = None
        while True:
            found = await self._driver.run(
                reading.fetch(self._session.name, query, self._session.policy, None, continuation)
            )
            for each in found.entities:
                yield each.properties
            if (continuation := found.continuation) is None:
                return


class IndexQuery(Generic[E]):
    """Entities that an index finds, each of which has the values when it is read. `Table.by` returns it."""

    def __init__(self, driver: Driver, session: Session[E], asked: LookupRequest) -> None:
        """Take what is looked up.

        Raises:
            QueryError: there is no such index, or it cannot be asked so.
        """
        placed(session, asked)
        self._driver = driver
        self._session = session
        self._asked = asked

    async def __aiter__(self) -> AsyncIterator[E]:
        """Read the entities, page by page of the index."""
        continuation: Continuation | None = None
        while True:
            found = await self._driver.run(look_up(self._session, self._asked, continuation))
            for each in self._session.decoded(found.entities):
                yield each
            if (continuation := found.continuation) is None:
                return

    async def one(self) -> E:
        """Return the only entity.

        Raises:
            NotOne: there is none, or there are several.
        """
        return reading.only(await self.first(2))

    async def one_or_none(self) -> E | None:
        """Return the only entity; None if there is none.

        Raises:
            NotOne: there are several.
        """
        found = await self.first(2)
        return reading.only(found) if found else None

    async def first(self, count: int) -> list[E]:
        """Return the first entities in the order of the index, as many as there are."""
        found: list[E] = []
        if count < 1:
            return found
        async for each in self:
            found.append(each)
            if len(found) == count:
                break
        return found

    async def exists(self) -> bool:
        """Tell whether there is such an entity."""
        return bool(await self.first(1))

    async def count(self) -> int:
        """Count the entities, which are read for that."""
        total = 0
        async for _ in self:
            total += 1
        return total

    async def copies(self) -> AsyncIterator[FieldCopies]:
        """Yield the copies of columns that the entries have, without a read of each entity.

        Each copy is what was committed last when it was read.

        Raises:
            QueryError: the index has no copies.
        """
        continuation: Continuation | None = None
        while True:
            page = await self._driver.run(look_up_copies(self._session, self._asked, continuation))
            for each in page.copies:
                yield each
            if (continuation := page.continuation) is None:
                return
