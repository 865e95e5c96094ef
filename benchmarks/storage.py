"""What entities take on the disk of a PostgreSQL server, by how many share a partition, and what they write to its log.

    python -m benchmarks.storage

A server of its own, gone in the end; entities of 1 KB (`entities`), inserted one by one through the engine.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count

from tests.postgres.server import PostgresServer

from benchmarks.entities import entity, row_key
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.precondition import Expect, Foreseeing, Foreseen
from lazulite.protocol.clock import system_clock

ENTITIES = 100_000
IN_FLIGHT = 64
SHARING = (1000, 10, 1)
"""Entities of each partition."""

_SIZES = """
SELECT pg_table_size('lazulite.rows'), pg_indexes_size('lazulite.rows'),
    pg_table_size('lazulite.partitions') + pg_indexes_size('lazulite.partitions')
"""


class _Insert(Foreseeing):
    def __init__(self, row: str, value: bytes) -> None:
        self._row = row
        self._value = value

    def __call__(self, _: Sequence[bytes | None], __: int) -> Mapping[str, bytes | None]:
        return {self._row: self._value}

    def foresee(self) -> Foreseen | None:
        return Foreseen(Expect.ABSENT)

    def value(self, _: int) -> bytes | None:
        return self._value


async def _insert(dsn: str, sharing: int) -> None:
    engine = PostgresEngine(PostgresSettings(dsn=dsn), system_clock)
    numbers = count()

    async def work() -> None:
        while (number := next(numbers)) < ENTITIES:
            # Neighbours in time are in different partitions, as if many clients wrote.
            partition = f"r{number % (ENTITIES // sharing):012d}"
            row = row_key(number // (ENTITIES // sharing))
            await engine.commit(1, partition, [row], _Insert(row, entity(partition, row, number)))

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    await engine.close()


def main() -> None:
    """Print a line for each number of entities that share a partition."""
    print("entities of a partition | rows | their index | partitions, with index | all | log   (bytes an entity)")
    with PostgresServer.make(max_wal_size="16GB", checkpoint_timeout="30min") as server:
        for sharing in SHARING:
            with server.database() as dsn:
                before = server.execute("SELECT pg_current_wal_lsn()")[0][0]
                asyncio.run(_insert(dsn, sharing))
                log = server.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), $1)", before)[0][0]
                sizes = tuple(server.execute(_SIZES, database=dsn.rpartition("/")[2])[0])
                each = [size / ENTITIES for size in (*sizes, sum(sizes), float(log))]
                print(f"{sharing:>23} | " + " | ".join(f"{size:,.0f}" for size in each))


if __name__ == "__main__":
    main()
