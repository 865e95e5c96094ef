"""The tables of all accounts: their names, spaces and stored access policies.

A table is a row of the space `TABLES`: partition = account, row = the table's name in lower case, value = JSON of a
`Table`. So a table's name is unique in its account whatever its case. Names of tables of metrics begin with `$`,
before the first name of a list, so no list has them.
"""

from dataclasses import dataclass

from lazulite.engine.contract import Engine
from lazulite.partitions.ranges import TableKey
from lazulite.partitions.stored_maps import forget
from lazulite.protocol.errors import ServiceError
from lazulite.records.catalog import NamedResource, ResourceCatalog, TimeToLive
from lazulite.records.spaces import TABLES

SYSTEM = "$"
"""Begins the names of the tables of metrics, which clients read, and do not create."""
_OLD_NAMES = {
    f"$metricstransactions{each}": f"$metricshourprimarytransactions{each}" for each in ("blob", "queue", "table")
}
"""The names of tables of metrics before 2013-08-15 -> those of the same tables since then."""


def row_of(name: str) -> str:
    """Return the row of a table, which all spellings of its name have."""
    lower = name.lower()
    return _OLD_NAMES.get(lower, lower)


@dataclass(frozen=True, slots=True)
class Table(NamedResource):
    """One table."""


class Catalog(ResourceCatalog[Table]):
    """The tables of all accounts; a table that does not exist is a `ResourceNotFound`.

    Args:
        engine: holds the rows.
        ttl: as of `ResourceCatalog`.
    """

    def __init__(self, engine: Engine, ttl: TimeToLive | None = None) -> None:
        super().__init__(engine, TABLES, Table, "ResourceNotFound", fold=row_of, ttl=ttl)

    async def require_table(self, account: str, name: str) -> Table:
        """Return the table of entities that a request addresses, perhaps from the cache.

        Raises:
            ServiceError: `TableNotFound`.
        """
        table = await self.get(account, name)
        if table is None:
            raise ServiceError("TableNotFound")
        return table

    async def has(self, table: TableKey) -> bool:
        """Return whether a table is there now, and not another one of its name."""
        found = await self.read(table.account, table.table)
        return found is not None and found.space == table.space

    async def _forget(self, account: str, space: int) -> None:
        """Remove the map of the table's ranges."""
        await forget(self._engine, account, space)

    async def create(self, account: str, name: str) -> Table:
        """Create a table.

        Raises:
            ServiceError: `TableAlreadyExists`.
        """
        table = await self.add(account, name, lambda space: Table(name, space), _reject)
        assert table is not None, "no other table is accepted"
        return table


def _reject(_: Table) -> None:
    raise ServiceError("TableAlreadyExists")
