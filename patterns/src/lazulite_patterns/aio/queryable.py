"""The reads of a table, with an asynchronous client: by keys, by conditions, by indexes, by ranges."""

from collections.abc import AsyncIterator, Iterable
from typing import Generic, TypeVar

from lazulite_patterns.aio.driver import Driver
from lazulite_patterns.aio.query import IndexQuery, Query
from lazulite_patterns.checkpoints import Checkpoint
from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.runtime import Gather
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.conditions import Condition
from lazulite_patterns.table import reading
from lazulite_patterns.table.indexed import LookupRequest
from lazulite_patterns.table.plan import plan
from lazulite_patterns.table.ranges import Ranges
from lazulite_patterns.table.session import Session

E = TypeVar("E")


class Queryable(Generic[E]):
    """Reads entities. `Table` is one, and writes them as well."""

    _driver: Driver
    _session: Session[E]

    async def get(self, key: E | EntityKey) -> E | None:
        """Return an entity by its keys, or by an entity with the same keys; None if it is absent."""
        return await self._driver.run(self._session.get(key))

    async def get_many(self, keys: Iterable[E | EntityKey], *, workers: int = 32) -> list[E | None]:
        """Return entities by their keys, in the order of the keys; None for absent ones. Reads at one time."""
        reads = tuple(self._session.get(each) for each in keys)
        return await self._driver.run(perform(Gather(reads, workers)))

    def where(self, *conditions: Condition, scan: bool = False) -> Query[E]:
        """Return the query for the entities of a class, and of its subclasses, that fulfil all conditions.

        Args:
            conditions: such as `Employee.department == "Sales"`, `Employee.id.between(100, 199)`.
            scan: whether the service may have to read the whole table.

        Raises:
            QueryError: it would be a table scan, or a condition cannot be asked.
        """
        session = self._session
        return Query(self._driver, session, plan(conditions, session.kinds, scan=scan, hidden=session.hidden))

    async def any_of(self, *queries: Query[E], workers: int = 8) -> list[E]:
        """Return the entities that one of the queries finds, once each, in the order of keys; all are in memory.

        The service reads the whole table for conditions that are joined by `or`. So these are queries at one time.
        """
        plans = [each.plan for each in queries]
        found = await self._driver.run(reading.any_of(self._session.name, plans, self._session.policy, workers))
        return list(self._session.decoded(found))

    def by(self, *conditions: Condition, index: str | None = None, **columns: object) -> IndexQuery[E]:
        """Return the query for the entities that have values of the columns of an index: `by(email="jo@contoso.com")`.

        Args:
            conditions: such as `Employee.last_name.starts_with("Jo")`, for the last column.
            index: the name of the index, if several ones begin with the columns; None for the one with the fewest.
            columns: the first columns of an index, or all; within a partition, those of the PartitionKey, too.

        Raises:
            QueryError: there is no such index, or it cannot be asked so.
        """
        return IndexQuery(self._driver, self._session, LookupRequest.of(conditions, columns, index))

    async def partitions(self) -> AsyncIterator[str]:
        """Yield each PartitionKey once, by one request for each."""
        after: str | None = None
        session = self._session
        while True:
            after = await self._driver.run(reading.next_partition(session.name, session.policy, after, session.hidden))
            if after is None:
                return
            yield after

    async def scan(
        self, *, split: int = 16, checkpoint: Checkpoint | None = None, workers: int = 8
    ) -> AsyncIterator[E]:
        """Yield all entities of the table, by several ranges at the same time. Within a range they are in order.

        Args:
            split: ranges of partitions, at most. They are alike in the keys that they may have, not in entities.
            checkpoint: where to keep what is still to be read, after entities were taken. The next scan goes on
                there, and yields entities of the last pages again.
            workers: ranges that are read at the same time; a page of each is in memory.

        Raises:
            ValueError: the checkpoint is of another table.
        """
        session = self._session
        ranges = Ranges(session.name, session.policy, session.hidden, workers)
        kept = None if checkpoint is None else checkpoint.load()
        left = await self._driver.run(ranges.divided(split)) if kept is None else ranges.of(kept)
        while left:
            if checkpoint is not None:
                checkpoint.save(ranges.text(left))
            taken = await self._driver.run(ranges.round(left))
            for each in session.decoded(taken.entities):
                yield each
            left = taken.left
        if checkpoint is not None:
            checkpoint.save(None)
