# Generated from lazulite_patterns/aio/queryable.py. Do not edit this module: edit that one, and run `make twins`.
"""The reads of a table, with a synchronous client: by keys, by conditions, by indexes, by ranges."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from lazulite_patterns.checkpoints import Checkpoint
from lazulite_patterns.effects.ambient import Gather
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.tables import Continuation, EntityKey
from lazulite_patterns.entities.conditions import Condition
from lazulite_patterns.indexes.lookup import Copied
from lazulite_patterns.table import reading
from lazulite_patterns.table.indexed import Asked, look_up, look_up_copies
from lazulite_patterns.table.plan import plan
from lazulite_patterns.table.query import Query
from lazulite_patterns.table.ranges import Ranges
from lazulite_patterns.table.session import Session

E = TypeVar("E")


class Queryable(Generic[E]):
    """Reads entities. `Table` is one, and writes them as well."""

    _driver: Driver
    _session: Session[E]

    def get(self, key: E | EntityKey) -> E | None:
        """Return an entity by its keys, or by an entity with the same keys; None if it is absent."""
        return self._driver.run(self._session.get(key))

    def get_many(self, keys: Iterable[E | EntityKey], *, workers: int = 32) -> list[E | None]:
        """Return entities by their keys, in the order of the keys; None for absent ones. Reads at one time."""
        reads = tuple(self._session.get(each) for each in keys)
        return self._driver.run(perform(Gather(reads, workers)))

    def where(self, *conditions: Condition | tuple[Condition, ...], scan: bool = False) -> Query[E]:
        """Return the query for the entities of one class that fulfil all conditions: `e = columns(Employee)`.

        Args:
            conditions: such as `e.department == "Sales"`, `e.id.between(100, 199)`.
            scan: whether the service may have to read the whole table.

        Raises:
            QueryError: it would be a table scan, or a condition cannot be asked.
        """
        session = self._session
        query = plan(conditions, scan=scan, typed=session.several, hidden=session.hidden)
        return Query(self._driver, session, query)

    def any_of(self, *queries: Query[E], workers: int = 8) -> list[E]:
        """Return the entities that one of the queries finds, once each, in the order of keys; all are in memory.

        The service reads the whole table for conditions that are joined by `or`. So these are queries at one time.
        """
        plans = [each.plan for each in queries]
        found = self._driver.run(reading.any_of(self._session.name, plans, self._session.policy, workers))
        return reading.decoded(found, self._session.decode)

    def by(self, name: str, *values: object, prefix: bool = False, partition_key: str | None = None) -> Iterator[E]:
        """Yield the entities that have these values of an index, each of which has them when it is read.

        Args:
            name: of the index.
            values: of its first fields, or of all.
            prefix: whether the last value is only the beginning of a text.
            partition_key: of the entities, for an index within the partition.

        Raises:
            QueryError: there is no such index, or it cannot be asked so.
        """
        asked = Asked(name, values, prefix, partition_key)
        go_on: Continuation | None = None
        while True:
            hits = self._driver.run(look_up(self._session, asked, go_on))
            for each in hits.entities:
                yield self._session.decode(each)
            if (go_on := hits.continuation) is None:
                return

    def copied(
        self, name: str, *values: object, prefix: bool = False, partition_key: str | None = None
    ) -> Iterator[Copied]:
        """Yield copies of fields that the entries of an index have, without a read of each entity.

        Each copy is what was committed last when it was read. Arguments are those of `by`.

        Raises:
            QueryError: there is no such index with copies, or it cannot be asked so.
        """
        asked = Asked(name, values, prefix, partition_key)
        go_on: Continuation | None = None
        while True:
            page = self._driver.run(look_up_copies(self._session, asked, go_on))
            yield from page.copies
            if (go_on := page.continuation) is None:
                return

    def partitions(self) -> Iterator[str]:
        """Yield each PartitionKey once, by one request for each."""
        after: str | None = None
        session = self._session
        while True:
            after = self._driver.run(reading.next_partition(session.name, session.policy, after, session.hidden))
            if after is None:
                return
            yield after

    def scan(self, *, split: int = 16, checkpoint: Checkpoint | None = None, workers: int = 8) -> Iterator[E]:
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
        left = self._driver.run(ranges.divided(split)) if kept is None else ranges.of(kept)
        while left:
            if checkpoint is not None:
                checkpoint.save(ranges.text(left))
            taken = self._driver.run(ranges.round(left))
            for each in taken.entities:
                yield session.decode(each)
            left = taken.left
        if checkpoint is not None:
            checkpoint.save(None)
