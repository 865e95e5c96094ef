"""Entities of many properties, with an asynchronous client."""

from collections.abc import Callable, Sequence

from azure.data.tables.aio import TableClient

from lazulite_patterns.aio.driver import Driver
from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Properties
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.shapes.protocols.wide import WideProtocol
from lazulite_patterns.shapes.protocols.wide_check import WideCheck


class Wide:
    """Property bags of more than 252 properties, or of more than 1 MiB, each value within the limits of the service.

    Attributes:
        client: the SDK's client, for everything else.
        driver: what runs the protocols; `audit` needs it.
        policy: deadlines and marks; `audit` has the same.

    All rows of an entity are written in one transaction: at most 100 rows, and 4 MiB as they are sent.

    Every method may raise `Rejected`: the service rejects the request. Writes raise `EntityValueError` for what the
    service would reject, and `OutcomeUnknown`; reads raise `Unavailable`, and `Inconsistent` if another program
    changed rows.
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
        self._protocol = WideProtocol(client.table_name, policy)

    async def get(self, key: EntityKey) -> Bag | None:
        """Return an entity; None if it is absent."""
        return await self.driver.run(self._protocol.get(key))

    async def insert(self, key: EntityKey, properties: Properties) -> None:
        """Write an entity that must be absent. Raises Exists if it is not."""
        await self.driver.run(self._protocol.insert(key, properties))

    async def upsert(self, key: EntityKey, properties: Properties) -> None:
        """Write an entity, whatever is there. Raises Conflict if other writers were faster, each of eight times."""
        await self.driver.run(self._protocol.upsert(key, properties))

    async def update(self, key: EntityKey, change: Callable[[Bag], Properties], *, attempts: int = 8) -> None:
        """Read an entity, change it, and write it if no other writer was faster.

        Args:
            key: keys of the entity.
            change: returns the new properties from those that were read. It may be called several times.
            attempts: times to read and write, at most.

        Raises:
            Absent: there is no such entity.
            Conflict: another writer was faster, each time.
        """
        await self.driver.run(self._protocol.update(key, change, attempts))

    async def delete(self, key: EntityKey) -> bool:
        """Delete an entity; False if it is absent."""
        return await self.driver.run(self._protocol.delete(key))

    def checks(self) -> Sequence[Check]:
        """Return what `audit` examines: rows that are not of one write."""
        return [WideCheck(self._protocol)]
