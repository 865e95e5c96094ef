# Generated from lazulite_patterns/aio/shapes/series.py. Do not edit this module: edit that one, and run `make twins`.
"""Series of numbers, with a synchronous client."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from azure.data.tables import TableClient

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.shapes.protocols.series import SeriesProtocol
from lazulite_patterns.shapes.protocols.series_check import SeriesCheck

N = TypeVar("N", int, float)


class Series(Generic[N]):
    """Series of numbers, each in one entity: the counts of 24 hours, the sums of 12 months.

    Attributes:
        client: the SDK's client, for everything else.
        driver: what runs the protocols.
        policy: deadlines and marks; `audit` has the same.

    Writes raise `EntityValueError` for what the service would reject, before it is sent.
    """

    def __init__(
        self,
        client: TableClient,
        slots: int,
        kind: type[N],
        *,
        name: str = "S",
        shards: int = 1,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            client: of the table. Its own retries are not used.
            slots: numbers of a series.
            kind: `int` for Edm.Int64, or `float` for Edm.Double.
            name: with which the names of the properties begin: `S00`, `S01` …
            shards: rows over which the adds to one series are spread. It may be raised later.
            policy: deadlines and marks.
            runtime: clock, randomness and failpoints, for tests.

        Raises:
            SchemaError: an entity has not so many properties, or none of that name; or there are too many shards.
        """
        self.client = client
        self.driver, self.policy = Driver({client.table_name: client}, runtime), policy
        self._protocol: SeriesProtocol[N] = SeriesProtocol(client.table_name, slots, kind, name, shards, policy)

    def add(self, key: EntityKey, slot: int, amount: N) -> None:
        """Add to one slot. A series that is absent begins with zeros.

        Raises:
            Conflict: other writers were faster, until the deadline.
            OutcomeUnknown: the answer was lost, and so many others wrote since that the row does not tell.
        """
        self.driver.run(self._protocol.add(key, {slot: amount}))

    def add_all(self, key: EntityKey, amounts: Mapping[int, N]) -> None:
        """Add to several slots in one write. Raises what `add` does."""
        self.driver.run(self._protocol.add(key, amounts))

    def put(self, key: EntityKey, values: Mapping[int, N]) -> None:
        """Set slots to values in one write, whatever they were. Raises ValueError for a series with shards."""
        self.driver.run(self._protocol.put(key, values))

    def get(self, key: EntityKey) -> list[N] | None:
        """Return the numbers of all slots; None if there is no such series."""
        return self.driver.run(self._protocol.get(key))

    def checks(self) -> Sequence[Check]:
        """Return what `audit` examines: slots that are no numbers, and rows that reads do not count."""
        return [SeriesCheck(self._protocol)]
