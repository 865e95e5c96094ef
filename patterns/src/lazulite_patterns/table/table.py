"""A table of entities, with a synchronous client."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import UnionType
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from azure.data.tables import TableClient

from lazulite_patterns.audit.checkpoints import Checkpoint
from lazulite_patterns.audit.finding import Check
from lazulite_patterns.effects.ambient import Ambient, Together
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.tables import Continuation, EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.indexes.index import Index
from lazulite_patterns.indexes.lookup import Copied
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.table import reading
from lazulite_patterns.table.conditions import Condition
from lazulite_patterns.table.indexed import Asked, look_up, look_up_copies, session_of
from lazulite_patterns.table.plan import plan
from lazulite_patterns.table.query import Query
from lazulite_patterns.table.ranges import Ranges
from lazulite_patterns.table.session import OnConflict, Session
from lazulite_patterns.table.transaction import Transaction

if TYPE_CHECKING:
    from azure.storage.queue import QueueClient  # An extra: only programs with queues have it.

E = TypeVar("E")


class Table(Generic[E]):
    """Reads and writes entities of one class or several ones, or property bags.

    Attributes:
        client: the SDK's client, for everything else.

    Every method may raise `Rejected`: the service refuses the request; and what `EntityValueError` and
    `EntityFormatError` say. Writes raise `OutcomeUnknown` if the result is not known and the entity does not tell;
    reads raise `Unavailable` if there is no answer before the deadline.
    """

    @overload
    def __init__(
        self: "Table[Bag]",
        client: TableClient,
        *,
        outbox: bool = ...,
        policy: Policy = ...,
        ambient: Ambient | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        client: TableClient,
        kinds: type[E] | UnionType,
        *,
        indexes: Sequence[Index] = ...,
        clients: Sequence[TableClient] = ...,
        outbox: bool = ...,
        queue: "QueueClient | None" = ...,
        policy: Policy = ...,
        ambient: Ambient | None = ...,
    ) -> None: ...
    def __init__(
        self,
        client: TableClient,
        kinds: type[E] | UnionType | None = None,
        *,
        indexes: Sequence[Index] = (),
        clients: Sequence[TableClient] = (),
        outbox: bool = False,
        queue: "QueueClient | None" = None,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        ambient: Ambient | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            client: of the table. Its own retries are not used.
            kinds: a class that is declared with `entity`, or a union of such; None for property bags.
            indexes: of the entities; the table has one class then.
            clients: of the other tables that indexes name.
            outbox: whether side effects are bound to writes; queries then leave their rows out.
            queue: the client of the queue whose workers write eventual entries: `IndexTask`.
            policy: deadlines and marks.
            ambient: clock, randomness and failpoints, for tests.
        """
        self.client = client
        tables = {each.table_name: each for each in (client, *clients)}
        name = None if queue is None else queue.queue_name
        self._driver = Driver(tables, ambient, queues={} if queue is None else {queue.queue_name: queue})
        self._session: Session[E] = session_of(
            client.table_name, kinds, policy, indexes, tables, outbox=outbox, queue=name
        )

    @property
    def driver(self) -> Driver:
        """What runs the protocols of the table."""
        return self._driver

    def checks(self) -> Sequence[Check]:
        """Return what an audit examines: rows that no class can read, entities without entries, and entries without.

        `audit` takes the table, as it has this method and the driver.
        """
        return self._session.checks()

    @property
    def session(self) -> Session[E]:
        """Makes the protocols of this table, for protocols over several tables."""
        return self._session

    @property
    def clients(self) -> dict[str, TableClient]:
        """The SDK's clients of the table and of its indexes, by the names that protocols use."""
        return self._driver.tables

    def get(self, key: E | EntityKey) -> E | None:
        """Return an entity by its keys, or by an entity with the same keys; None if it is absent."""
        return self._driver.run(self._session.get(key))

    def insert(self, entity: E) -> None:
        """Write an entity that must be absent. Raises Exists if it is not."""
        self._driver.run(self._session.insert(entity))

    def put(self, entity: E) -> None:
        """Write an entity, whatever is there.

        A request whose answer is lost is sent again, unless the entity shows that it was done. What another program
        writes in between is then overwritten.
        """
        self._driver.run(self._session.put(entity))

    def replace(self, entity: E) -> None:
        """Write an entity that was read. Raises Conflict if the row is no more the one that was read."""
        self._driver.run(self._session.replace(entity))

    def merge(self, key: E | EntityKey, /, **fields: object) -> None:
        """Write some fields of an entity, whatever the others are. Raises Absent if it is not there."""
        self._driver.run(self._session.merge(key, fields))

    def delete(self, key: E | EntityKey) -> bool:
        """Delete an entity; False if it is absent.

        An entity that was read is deleted only if the row is still the one. Raises Conflict if it is not.
        """
        return self._driver.run(self._session.delete(key))

    def update(
        self,
        key: E | EntityKey,
        change: Callable[[E], E],
        *,
        attempts: int = 8,
        on_conflict: OnConflict = "rebase",
        remove: Sequence[str] = (),
    ) -> E:
        """Read an entity, change it, and write it if the row is still the one that was read; return what was written.

        Args:
            key: keys, or an entity with the same keys.
            change: returns the new entity from the one that was read. It may be called several times.
            attempts: times to read and write, at most.
            on_conflict: `rebase` reads and changes again if another program was faster; `raise` does not.
            remove: properties that the row shall not have any more.

        Raises:
            Absent: there is no such entity.
            Conflict: another program was faster, each time.
        """
        changed = self._driver.run(self._session.update(key, change, attempts, on_conflict, remove))
        return changed.entity

    @contextmanager
    def partition(self, partition_key: str | None = None) -> Iterator[Transaction[E]]:
        """Collect writes of one partition, and send them in one transaction at the end of the block.

        Args:
            partition_key: of all entities; None for that of the first one.

        Raises:
            Conflict: an entity is not as expected, and nothing was written. `index` is the number of its write.
        """
        transaction = Transaction(self._session, partition_key)
        yield transaction
        self._driver.run(transaction.commit())

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

    def get_many(self, keys: Iterable[E | EntityKey], *, workers: int = 32) -> list[E | None]:
        """Return entities by their keys, in the order of the keys; None for absent ones. Reads at one time."""
        reads = tuple(self._session.get(each) for each in keys)
        return self._driver.run(perform(Together(reads, workers)))

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
