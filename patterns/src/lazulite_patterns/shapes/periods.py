# Generated from lazulite_patterns/aio/shapes/periods.py. Do not edit this module: edit that one, and run `make twins`.
"""A table for each period, with a synchronous client."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from types import UnionType
from typing import Any, Generic, TypeVar

from azure.data.tables import TableServiceClient

from lazulite_patterns.effects import sdk
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.entities.conditions import Condition
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.shapes.protocols.periods import Every, Names, PeriodsProtocol
from lazulite_patterns.table.table import Table

E = TypeVar("E")
_TABLES_MAX = 64
"""Tables whose clients are kept."""


class _Service:
    """Tables by the SDK's client."""

    def __init__(self, client: TableServiceClient, runtime: Runtime) -> None:
        self._client, self._runtime = client, runtime

    def _once(self, options: sdk.Options) -> dict[str, Any]:
        return {**sdk.NO_RETRIES, **options, "raw_response_hook": sdk.Hook(self._runtime.hear)}

    def listed(self, condition: str, **options: object) -> list[str]:
        with sdk.translated():
            return [each.name for each in self._client.query_tables(condition, **self._once(options))]

    def create(self, name: str, **options: object) -> None:
        with sdk.translated():
            self._client.create_table(name, **self._once(options))

    def drop(self, name: str, **options: object) -> None:
        with sdk.translated():
            self._client.delete_table(name, **self._once(options))


class Periods(Generic[E]):
    """Entities in a table for each hour, day, month or year of UTC. Old ones are deleted a table at a time.

    Attributes:
        client: the SDK's client, for everything else.
        driver: what runs the protocols.
    """

    def __init__(
        self,
        client: TableServiceClient,
        prefix: str,
        kinds: type[E] | UnionType,
        *,
        every: Every = "day",
        keep: timedelta,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            client: of the account. Its own retries are not used.
            prefix: with which the names of the tables begin: `LoginsD20140731`.
            kinds: a class that is declared with `entity`, or a union of such.
            every: the period.
            keep: how long a table is kept after its period is over.
            policy: deadlines and marks.
            runtime: clock, randomness and failpoints, for tests.

        Raises:
            TypeError: the client is not synchronous.
            ValueError: the service takes no table of such a name.
        """
        sdk.check_clients([client], "synchronous")
        self.client = client
        self.driver = Driver({}, runtime)
        self._kinds, self._policy = kinds, policy
        self._protocol = PeriodsProtocol(Names(prefix, every), keep, _Service(client, self.driver.runtime), policy)
        self._tables: dict[str, Table[E]] = {}

    def at(self, time: datetime) -> Table[E]:
        """Return the table of the period that a time is in, whether it is there or not. Reads nothing."""
        return self._table(self._protocol.names.at(time).name)

    def insert(self, entity: E, time: datetime) -> None:
        """Write an entity that must be absent into the table of a time, which is created if it is absent.

        Raises:
            Exists: the entity is there.
            PeriodExpired: the period is over for longer than tables are kept. Nothing was written.
        """
        self.driver.run(self._protocol.check(time))
        table = self.at(time)
        try:
            table.insert(entity)
        except Rejected as rejected:
            if rejected.code != "TableNotFound":
                raise
            self.driver.run(self._protocol.create(time))
            table.insert(entity)

    def prepare(self, ahead: int = 1) -> list[str]:
        """Create the tables of this period and of the next ones, so that no write meets an absent one.

        Returns:
            their names.
        """
        return self.driver.run(self._protocol.prepare(ahead))

    def names(self) -> list[str]:
        """Return the names of the tables that are there, oldest first."""
        return [each.name for each in self.driver.run(self._protocol.existing())]

    def tables(self) -> list[Table[E]]:
        """Return the tables that are there, oldest first: `audit` takes them, too."""
        return [self._table(each.name) for each in self.driver.run(self._protocol.existing())]

    def between(
        self,
        first: datetime,
        last: datetime,
        *conditions: Condition,
        scan: bool = False,
    ) -> Iterator[E]:
        """Yield entities of all periods from one time to another, both included, the oldest period first.

        Args:
            first: in the first period.
            last: in the last period.
            conditions: as of `Table.where`.
            scan: whether the service may have to read whole tables.

        Raises:
            QueryError: it would be a table scan, or a condition cannot be asked.
        """
        self.at(first).where(*conditions, scan=scan)
        names = self._protocol.names
        for period in self.driver.run(self._protocol.existing()):
            if not names.at(first).start <= period.start <= names.at(last).start:
                continue
            try:
                yield from self._table(period.name).where(*conditions, scan=scan)
            except Rejected as rejected:
                if rejected.code != "TableNotFound":  # It has expired meanwhile.
                    raise

    def expire(self) -> list[str]:
        """Drop the tables that are kept no longer, oldest first, and return their names."""
        return self.driver.run(self._protocol.expire())

    def _table(self, name: str) -> Table[E]:
        if name not in self._tables:
            if len(self._tables) >= _TABLES_MAX:
                self._tables.pop(next(iter(self._tables)))
            client = self.client.get_table_client(name)
            self._tables[name] = Table(client, self._kinds, policy=self._policy, runtime=self.driver.runtime)
        return self._tables[name]
