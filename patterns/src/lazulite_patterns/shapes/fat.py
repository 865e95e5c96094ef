# Generated from lazulite_patterns/aio/shapes/fat.py. Do not edit this module: edit that one, and run `make twins`.
"""Entities of any size, with a synchronous client."""

from collections.abc import Callable, Sequence

from azure.data.tables import TableClient

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Properties
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.shapes.protocols.fat import FatProtocol
from lazulite_patterns.shapes.protocols.rests import FatCheck, collect


class Fat:
    """Property bags of any size: values may exceed 64 KiB, and entities 1 MiB.

    Attributes:
        client: the SDK's client, for everything else.
        driver: what runs the protocols; `audit` needs it.
        policy: deadlines and marks; `audit` has the same.

    An entity is one row as long as it fits. Properties that fit can be read and queried by any program.

    Every method may raise `Rejected`: the service rejects the request. Writes raise `EntityValueError` for what the
    service would reject, and `OutcomeUnknown`; reads raise `Unavailable`, and `Inconsistent` if another program
    removed rows.
    """

    def __init__(
        self,
        client: TableClient,
        *,
        compress: bool = False,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            client: of the table. Its own retries are not used.
            compress: whether what exceeds a row's limits is compressed by zlib.
            policy: deadlines and marks.
            runtime: clock, randomness and failpoints, for tests.
        """
        self.client = client
        self.driver, self.policy = Driver({client.table_name: client}, runtime), policy
        self._protocol = FatProtocol(client.table_name, policy, compress)

    def get(self, key: EntityKey) -> Bag | None:
        """Return an entity; None if it is absent."""
        return self.driver.run(self._protocol.get(key))

    def insert(self, key: EntityKey, properties: Properties) -> None:
        """Write an entity that must be absent. Raises Exists if it is not."""
        self.driver.run(self._protocol.insert(key, properties))

    def upsert(self, key: EntityKey, properties: Properties) -> None:
        """Write an entity, whatever is there. Raises Conflict if other writers were faster, each of eight times."""
        self.driver.run(self._protocol.upsert(key, properties))

    def update(self, key: EntityKey, change: Callable[[Bag], Properties], *, attempts: int = 8) -> None:
        """Read an entity, change it, and write it if no other writer was faster.

        Args:
            key: keys of the entity.
            change: returns the new properties from those that were read. It may be called several times.
            attempts: times to read and write, at most.

        Raises:
            Absent: there is no such entity.
            Conflict: another writer was faster, each time.
        """
        self.driver.run(self._protocol.update(key, change, attempts))

    def delete(self, key: EntityKey) -> bool:
        """Delete an entity; False if it is absent."""
        return self.driver.run(self._protocol.delete(key))

    def collect(self, partition_key: str) -> int:
        """Delete the rows of a partition that crashes left, and return their number; none younger than 10 minutes."""
        return self.driver.run(collect(self.client.table_name, partition_key, self._protocol.policy))

    def checks(self) -> Sequence[Check]:
        """Return what `audit` examines: rows that no head names, and heads whose rows are absent."""
        return [FatCheck(self.client.table_name, self._protocol.policy)]
