# Generated from lazulite_patterns/aio/streams.py. Do not edit this module: edit that one, and run `make twins`.
"""Event streams, with a synchronous client."""

from collections.abc import Callable, Iterator, Sequence
from types import UnionType
from typing import Generic, TypeVar, overload

from azure.data.tables import TableClient

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import Continuation
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.streams.checks import StreamCheck
from lazulite_patterns.streams.layout import Event, Recorded
from lazulite_patterns.streams.protocol import StreamProtocol
from lazulite_patterns.table.session import Session, kinds_of
from lazulite_patterns.table.transaction import Transaction

E = TypeVar("E")


class Stream(Generic[E]):
    """The events of one subject, such as an account, in the order of their versions, without gaps.

    Attributes:
        client: the SDK's client, for everything else.
        driver: what runs the protocols; `audit` needs it.
        policy: deadlines and marks; `audit` has the same.
        name: of the stream: its PartitionKey.
    """

    @overload
    def __init__(
        self: "Stream[Bag]",
        client: TableClient,
        name: str,
        *,
        policy: Policy = ...,
        runtime: Runtime | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        client: TableClient,
        name: str,
        projections: type[E] | UnionType,
        *,
        policy: Policy = ...,
        runtime: Runtime | None = ...,
    ) -> None: ...
    def __init__(
        self,
        client: TableClient,
        name: str,
        projections: type[E] | UnionType | None = None,
        *,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            client: of the table. Its own retries are not used.
            name: of the stream.
            projections: the classes of entities that are written with events; None for property bags.
            policy: deadlines and marks.
            runtime: clock, randomness and failpoints, for tests.
        """
        self.client = client
        self.name = name
        self.driver, self.policy = Driver({client.table_name: client}, runtime), policy
        self._protocol = StreamProtocol(client.table_name, name, policy)
        self._session: Session[E] = Session(client.table_name, kinds_of(projections), policy)

    def version(self) -> int:
        """Return the version of the last event; 0 for a stream that is absent."""
        return self.driver.run(self._protocol.version())

    def append(
        self,
        events: Sequence[Event],
        *,
        expected: int | None = None,
        project: Callable[[Transaction[E], int], None] | None = None,
        attempts: int = 8,
    ) -> int:
        """Append events in one transaction, and return the version of the last one.

        If all of them are in the stream, one after the other, by their ids, nothing is written.

        Args:
            events: at least one. With its id, an event has two rows.
            expected: the version that the stream must have; None for any.
            project: adds further writes of the partition to the transaction, from the version of the first event. It
                may be called several times.
            attempts: times to read and write, at most.

        Raises:
            WrongVersion: the stream has another version than the expected one.
            DuplicateEvent: some of the ids are in the stream.
            AppendTooLarge: they do not fit into one transaction.
            Conflict: a row of the projections is not as expected, or other writers were faster each time.
            OutcomeUnknown: the service did not answer before the deadline. The same append may be called again.
        """

        def planned(version: int) -> Sequence[Planned]:
            transaction = Transaction(self._session, self.name)
            if project is not None:
                project(transaction, version)
            return transaction.planned

        return self.driver.run(self._protocol.append(events, expected, planned, attempts))

    def read(self, first: int = 1) -> Iterator[Recorded]:
        """Yield the events from a version on, in their order."""
        continuation: Continuation | None = None
        while True:
            found = self.driver.run(self._protocol.page(first, None, continuation))
            yield from found.events
            if (continuation := found.continuation) is None:
                return

    def latest(self, count: int, *, before: int | None = None) -> list[Recorded]:
        """Return the last events, newest first; with `before` only those of versions below it."""
        return self.driver.run(self._protocol.latest(count, before))

    def find(self, event_id: str) -> int | None:
        """Return the version of the event with an id; None if there is none."""
        return self.driver.run(self._protocol.find(event_id))

    def checks(self) -> Sequence[Check]:
        """Return what `audit` examines: all streams of the table."""
        return [StreamCheck(self.client.table_name, self._protocol.policy)]
