"""Log tails, with an asynchronous client."""

import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime

from azure.data.tables.aio import TableClient

from lazulite_patterns.aio.driver import Driver
from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.shapes.protocols.tail import Entry, TailProtocol, every_time, from_to
from lazulite_patterns.shapes.protocols.tail_check import TailCheck

_PAGE = 1000


class Tail:
    """Logs, one in each partition, of which the newest entries are read first.

    Attributes:
        client: the SDK's client, for everything else.
        driver: what runs the protocols.
        policy: deadlines and marks; `audit` has the same.
    """

    def __init__(
        self,
        client: TableClient,
        *,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            client: of the table. Its own retries are not used.
            policy: deadlines and marks.
            runtime: clock, randomness and failpoints, for tests.
        """
        self.client = client
        self.driver, self.policy = Driver({client.table_name: client}, runtime), policy
        self._protocol = TailProtocol(client.table_name, policy)
        self._numbers = itertools.count()

    async def append(
        self, partition_key: str, properties: Mapping[str, object], time: datetime | None = None
    ) -> EntityKey:
        """Insert an entry, and return its keys.

        Args:
            partition_key: the log.
            properties: of the entry.
            time: of the event, with a zone; None for now.

        Raises:
            EntityValueError: the service would reject the entry, or the time has no zone.
            OutcomeUnknown: the answer was lost, and another program changed the entry since.
        """
        return await self.driver.run(self._protocol.append(partition_key, properties, time, next(self._numbers)))

    async def latest(self, partition_key: str, count: int, *, after: EntityKey | None = None) -> list[Entry]:
        """Return the newest entries of a log, newest first; with `after` only older ones than that."""
        page = await self.driver.run(self._protocol.page(partition_key, every_time(), count, after))
        return page.entries

    async def between(self, partition_key: str, first: datetime, last: datetime) -> AsyncIterator[Entry]:
        """Yield the entries of events from one time to another, both included, newest first."""
        after: EntityKey | None = None
        while True:
            request = self._protocol.page(partition_key, from_to(first, last), _PAGE, after)
            page = await self.driver.run(request)
            for each in page.entries:
                yield each
            if (after := page.last) is None:
                return

    async def trim(self, partition_key: str, before: datetime) -> int:
        """Delete the entries of events before a time, and return their number."""
        return await self.driver.run(self._protocol.trim(partition_key, before))

    def checks(self) -> Sequence[Check]:
        """Return what `audit` examines: rows among the entries that no read shows."""
        return [TailCheck(self.client.table_name)]
