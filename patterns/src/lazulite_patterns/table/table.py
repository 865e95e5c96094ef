# Generated from lazulite_patterns/aio/table.py. Do not edit this module: edit that one, and run `make twins`.
"""A table of entities, with a synchronous client."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import UnionType
from typing import TYPE_CHECKING, TypeVar, overload

from azure.data.tables import TableClient

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.ambient import Ambient
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.indexes.index import Index
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.table.indexed import session_of
from lazulite_patterns.table.queryable import Queryable
from lazulite_patterns.table.session import OnConflict, Session
from lazulite_patterns.table.transaction import Transaction

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient  # Extras: only programs with blobs and queues have them.
    from azure.storage.queue import QueueClient

E = TypeVar("E")


class Table(Queryable[E]):
    """Reads and writes entities of one class or several ones, or property bags.

    Attributes:
        client: the SDK's client, for everything else.

    Every method may raise `Rejected`: the service rejects the request; and what `EntityValueError` and
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
        clients: "Sequence[TableClient | ContainerClient]" = ...,
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
        clients: "Sequence[TableClient | ContainerClient]" = (),
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
            clients: of the other tables, and of the containers, that indexes name.
            outbox: whether side effects are bound to writes; queries then leave their rows out.
            queue: the client of the queue whose workers write eventual entries: `IndexTask`.
            policy: deadlines and marks.
            ambient: clock, randomness and failpoints, for tests.
        """
        self.client = client
        tables = {each.table_name: each for each in (client, *clients) if isinstance(each, TableClient)}
        blobs = {each.container_name: each for each in clients if not isinstance(each, TableClient)}
        name = None if queue is None else queue.queue_name
        queues = {} if queue is None else {queue.queue_name: queue}
        self._driver = Driver(tables, ambient, queues=queues, containers=blobs)
        self._session: Session[E] = session_of(
            client.table_name, kinds, policy, indexes, tables, containers=blobs, outbox=outbox, queue=name
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

    @property
    def containers(self) -> "dict[str, ContainerClient]":
        """The SDK's clients of the containers of its indexes, by the names that protocols use."""
        return self._driver.containers

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
