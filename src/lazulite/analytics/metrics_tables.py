"""The metrics tables of all accounts, as tables of entities that any client of tables can read.

Invariants: rows are written as the Table service writes them, so `lazulite check` and copies know them. The rows of an
interval are written in one commit, if its total is greater than that of the rows that are there. So readers see the
rows of one total, never those of an earlier one after those of a later one.
"""

from collections.abc import Iterable, Mapping
from contextlib import aclosing

from lazulite.engine.commit import put_rows
from lazulite.engine.contract import Engine, KeyRange
from lazulite.protocol.errors import ServiceError
from lazulite.table.catalog import Catalog, Table
from lazulite.table.model.edm import DOUBLE, INT64
from lazulite.table.model.row import Property, decode_row, encode_keys, encode_properties, stored_etag
from lazulite.table.operations.write_decisions import (
    INSERT,
    INSERT_OR_REPLACE,
    REPLACE,
    EntityWrite,
    Write,
    WriteRejectedError,
    apply_all,
)

CAPACITY_TABLE = "$MetricsCapacityBlob"
TOTAL = "TotalRequests"
_ROWS_A_STEP = 1000
"""The old rows that one step removes."""

Columns = Mapping[str, int | float]


class MetricsTables:
    """The tables on one engine.

    Args:
        engine: holds the rows.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._catalog = Catalog(engine)

    async def find(self, account: str, name: str) -> Table | None:
        """Return a table; None: it was never created. Raises `EngineError`."""
        return await self._catalog.read(account, name)

    async def ensure(self, account: str, name: str) -> Table:
        """Return a table, which is created if it does not exist. Raises `EngineError`."""
        found = await self.find(account, name)
        while found is None:
            try:
                return await self._catalog.create(account, name)
            except ServiceError:  # Another process was faster.
                found = await self.find(account, name)
        return found

    async def publish(self, table: Table, partition: str, rows: Iterable[tuple[str, Columns]], total: int) -> None:
        """Write the rows of an interval, unless there are rows of the same total or a greater one.

        Args:
            table: the table.
            partition: the PartitionKey of the interval.
            rows: RowKey and columns of each; the first one has the total.
            total: the requests of the interval.

        Raises:
            EngineError: the outcome is unknown; the same call may be repeated.
        """
        (first, columns), *others = rows
        rest = [_write(INSERT_OR_REPLACE, partition, row, each) for row, each in others]
        while True:
            current = await self._engine.get(table.space, partition, first)
            if current is not None and _total_of(current) >= total:
                return
            write = _write(INSERT, partition, first, columns)
            if current is not None:
                write = _write(REPLACE, partition, first, columns, stored_etag(current))
            try:
                await self._engine.commit(table.space, partition, apply_all([write, *rest]))
            except WriteRejectedError:
                continue  # Another process has changed the first row since it was read.
            return

    async def put(self, table: Table, partition: str, rows: Iterable[tuple[str, Columns]]) -> None:
        """Write rows, whatever there is. Raises `EngineError`."""
        writes = [_write(INSERT_OR_REPLACE, partition, row, columns) for row, columns in rows]
        await self._engine.commit(table.space, partition, apply_all(writes))

    async def has(self, table: Table, partition: str, row: str) -> bool:
        """Return whether a row exists. Raises `EngineError`."""
        return await self._engine.get(table.space, partition, row) is not None

    async def remove_before(self, table: Table, partition: str) -> None:
        """Remove the rows whose PartitionKeys are before one. Raises `EngineError`."""
        old = KeyRange(("", ""), (partition, ""))
        while True:
            found: dict[str, list[str]] = {}
            async with aclosing(self._engine.scan(table.space, [old], _ROWS_A_STEP)) as slices:
                async for part in slices:
                    for index in range(len(part.values)):
                        key = part.key(index)
                        found.setdefault(key[0], []).append(key[1])
            for each, rows in found.items():
                await self._engine.commit(table.space, each, put_rows(dict.fromkeys(rows)))
            if sum(map(len, found.values())) < _ROWS_A_STEP:
                return


def _total_of(row: bytes) -> int:
    """Return the total of a row; -1, if a user has replaced it by something else."""
    found = decode_row(row).properties.get(TOTAL)
    return int(found.literal.strip('"')) if found is not None and found.edm is INT64 else -1


def _write(kind: Write, partition: str, row: str, columns: Columns, etag: str | None = None) -> EntityWrite:
    properties = {
        name: Property(
            *((DOUBLE, DOUBLE.literal(value)) if isinstance(value, float) else (INT64, INT64.literal(value)))
        )
        for name, value in columns.items()
    }
    return EntityWrite(kind, partition, row, etag, encode_keys(partition, row), encode_properties(properties))
