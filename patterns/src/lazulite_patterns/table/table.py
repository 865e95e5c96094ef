# Generated from lazulite_patterns/aio/table.py. Do not edit this module: edit that one, and run `make twins`.
"""A table of entities, with a synchronous client."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import UnionType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from azure.core.exceptions import ResourceExistsError
from azure.data.tables import TableClient

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects import sdk
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.table.clients import Client, Clients, Credential, Source, by_kind, name_of
from lazulite_patterns.table.creation import create, is_there
from lazulite_patterns.table.indexed import session_of
from lazulite_patterns.table.queryable import Queryable
from lazulite_patterns.table.session import OnConflict, OnError, Session, indexes_of, kinds_of
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

    def __init__(
        self,
        client: TableClient,
        kinds: type[E] | UnionType,
        *,
        clients: Sequence[Client] = (),
        outbox: bool = False,
        on_error: OnError | None = None,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client of a table that is there. `open` creates a table that is absent.

        Args:
            client: of the table. Its own retries are not used.
            kinds: a class that is declared with `entity`, or a union of such; `Bag` for property bags.
            clients: of the other tables, the containers and the queue that the indexes of the classes name.
            outbox: whether side effects are bound to writes; queries then leave their rows out.
            on_error: called for a row of a query that no class can read, and the error; without it the query raises.
            policy: deadlines and marks.
            runtime: clock, randomness and failpoints, for tests.
        """
        self.client = client
        tables, containers, queues = by_kind((client, *clients))
        self._driver = Driver(tables, runtime, queues=queues, containers=containers)
        self._session: Session[E] = session_of(
            client.table_name,
            kinds,
            policy,
            tables=tables,
            containers=containers,
            queues=queues,
            outbox=outbox,
            on_error=on_error,
        )
        self._clients: Clients | None = None

    @classmethod
    def open(
        cls,
        source: Source,
        kinds: type[E] | UnionType,
        *,
        table: str | None = None,
        credential: Credential | None = None,
        clients: Sequence[Client] = (),
        outbox: bool = False,
        on_error: OnError | None = None,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
    ) -> Self:
        """Return the table of a class. The table is created if it is absent, and so is what its indexes need.

        Args:
            source: a connection string; an endpoint, with a credential; or the SDK's client of the account or table.
            kinds: a class that is declared with `entity`, or a union of such; `Bag` for property bags.
            table: its name; the class's name if it is None.
            credential: for an endpoint, such as `DefaultAzureCredential()`.
            clients: of other tables, containers and the queue of the indexes, where they do not follow from `source`.
            outbox: as of the class.
            on_error: as of the class.
            policy: as of the class.

        Raises:
            Rejected: the service does not let the table be created, and it is not there.
            ValueError: a client or a name is missing.
        """
        made = Clients(source, credential, name_of(source, kinds, table), indexes_of(kinds_of(kinds)), clients)
        opened = cls(
            made.table,
            kinds,
            clients=made.others,
            outbox=outbox,
            on_error=on_error,
            policy=policy,
        )
        return opened._created(made)

    def _created(self, made: Clients) -> Self:
        """Create what is absent of the tables, the containers and the queue; return this table, with its clients."""
        self._clients = made
        policy, driver = self._session.policy, self._driver
        created = False
        try:
            for name, client in driver.tables.items():
                driver.run(create(_creating(client.create_table), policy, name))
            for container in driver.containers.values():
                driver.run(create(_creating(container.create_container), policy))
            for queue in driver.queues.values():
                driver.run(create(_creating(queue.create_queue), policy))
            created = True
        finally:
            if not created:
                self.close()
        return self

    def close(self) -> None:
        """Close the clients that `open` made."""
        if self._clients is not None:
            self._clients.close()

    def __enter__(self) -> Self:
        """Return the table, whose clients are closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the clients that `open` made."""
        self.close()

    @property
    def driver(self) -> Driver:
        """What runs the protocols of the table."""
        return self._driver

    @property
    def policy(self) -> Policy:
        """Deadlines and marks of its requests."""
        return self._session.policy

    def checks(self) -> Sequence[Check]:
        """Return what an audit examines: rows that no class can read, entities without entries, and entries without.

        `audit` takes the table, as it has this method, the driver and the policy.
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

    @property
    def queues(self) -> "dict[str, QueueClient]":
        """The SDK's client of the queue of its indexes, by its name."""
        return self._driver.queues

    def insert(self, entity: E) -> None:
        """Write an entity that must be absent. Raises Exists if it is not."""
        self._driver.run(self._session.insert(entity))

    def upsert(self, entity: E) -> None:
        """Write an entity, whatever is there.

        A request whose answer is lost is sent again, unless the entity shows that it was done. What another program
        writes in between is then overwritten.
        """
        self._driver.run(self._session.upsert(entity))

    def insert_or_merge(self, entity: E) -> None:
        """Write an entity. Properties that it does not have, or that are None, stay as they are there."""
        self._driver.run(self._session.insert_or_merge(entity))

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
    def transaction(self, partition_key: str | None = None) -> Iterator[Transaction[E]]:
        """Collect writes of one partition, and send them in one transaction at the end of the block.

        Args:
            partition_key: of all entities; None for that of the first one.

        Raises:
            Conflict: an entity is not as expected, and nothing was written. `index` is the number of its write.
        """
        transaction = Transaction(self._session, partition_key)
        yield transaction
        self._driver.run(transaction.commit())


def _creating(method: Callable[..., Any]) -> Callable[..., object]:
    """Return what creates something by the SDK, with the errors of this library."""

    def creating(**options: object) -> None:
        with sdk.translated():
            try:
                method(**sdk.NO_RETRIES, **options)
            except ResourceExistsError as error:
                if not is_there(error):
                    raise

    return creating
