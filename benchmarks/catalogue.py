"""The workloads by name, for one server whose table holds so many entities."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from benchmarks.entities import (
    COUNT_BASE,
    PARTITION_ROWS,
    TRANSACTION_ROWS,
    entity,
    partition_key,
    row_key,
    wide_entity,
)
from benchmarks.requests import MINIMAL, TABLE, Requests
from benchmarks.workload import MARK, Workload

WRITE_PARTITIONS = 16
MERGED_ROWS = 100
"""Of each of these partitions."""
MANY_PARTITIONS = 1024
SCAN_PARTITION, SCAN_ROWS = "scan", 10_000
WIDE_ROWS = 200
RANGE_ROWS = 100
KEYS_MAX = 50_000
"""Reads visit at most this many keys, chosen over the whole table."""

PAGES = {
    "full-page query": ("", MINIMAL),
    "full-page query, $select": ("&$select=Count,Text", MINIMAL),
    "full-page query, nometadata": ("", "application/json;odata=nometadata"),
    "full-page query, fullmetadata": ("", "application/json;odata=fullmetadata"),
}
"""By name: what is added to the query, and what is accepted."""

_MARKED = MARK.decode()
_ENTITY = b'"RowKey"'
_INSERTED = b" 204 No Content"


@dataclass(frozen=True)
class Preload(Workload):
    """Transactions that fill partition after partition: ten requests to each, the number standing for the partition."""

    def numbered(self, first: int) -> Iterator[bytes]:
        """Yield the transactions, from the one with number `first` on."""
        tenths = [request.split(MARK) for request in self.requests]
        batch = first
        while True:
            partition, tenth = divmod(batch, len(tenths))
            yield f"{partition:0{len(MARK)}d}".encode().join(tenths[tenth])
            batch += 1


class Catalogue:
    """Builds workloads for a server at `host` with `entities` stored entities, a multiple of 100."""

    def __init__(self, host: str, entities: int) -> None:
        self.requests = Requests(host, datetime.now(UTC))
        self.entities = entities
        numbers = random.Random(1)  # the same keys in every run
        self._numbers = numbers.sample(range(entities), min(entities, KEYS_MAX))

    def preload(self) -> Preload:
        """Return what fills the table with 1 KB entities, `TRANSACTION_ROWS` a request."""
        tenths = [
            self.requests.transaction([entity(f"r{_MARKED}", row_key(start + n), start + n) for n in range(100)])
            for start in range(0, PARTITION_ROWS, TRANSACTION_ROWS)
        ]
        return Preload("load", "entities", TRANSACTION_ROWS, 4, 202, tenths, _INSERTED, entities=self.entities)

    def scan_preload(self) -> Workload:
        """Return what fills the partition to scan; each request is to be sent once."""
        numbers = [range(start, start + TRANSACTION_ROWS) for start in range(0, SCAN_ROWS, TRANSACTION_ROWS)]
        batches = [self.requests.transaction([entity(SCAN_PARTITION, f"{n:06d}", n) for n in part]) for part in numbers]
        return Workload("load of the partition to scan", "entities", TRANSACTION_ROWS, 4, 202, batches, _INSERTED)

    def wide_preload(self, properties: int) -> Workload:
        """Return what stores entities of so many properties; each request is to be sent once."""
        numbers = [range(start, start + TRANSACTION_ROWS) for start in range(0, WIDE_ROWS, TRANSACTION_ROWS)]
        partition = f"wide{properties}"
        batches = [
            self.requests.transaction([wide_entity(partition, f"{n:06d}", properties) for n in part])
            for part in numbers
        ]
        return Workload("load of wide entities", "entities", TRANSACTION_ROWS, 4, 202, batches, _INSERTED)

    def get(self, connections: int = 32) -> Workload:
        """Read single entities, authorized by SAS."""
        requests = [self.requests.raw("GET", path) for path in self._paths()]
        return self._read("point GET, SAS", "requests", 1, connections, requests)

    def get_signed(self) -> Workload:
        """Read single entities, each request signed with the account's key."""
        requests = [self.requests.signed("GET", path) for path in self._paths()]
        return self._read("point GET, Shared Key", "requests", 1, 32, requests)

    def get_wide(self, properties: int) -> Workload:
        """Read single entities of so many properties."""
        paths = [f"{TABLE}(PartitionKey='wide{properties}',RowKey='{n:06d}')" for n in range(WIDE_ROWS)]
        requests = [self.requests.raw("GET", path) for path in paths]
        return self._read("point GET by properties", "requests", 1, 32, requests, str(properties))

    def insert(self, connections: int = 64) -> Workload:
        """Insert single entities, answered when they are on the disk."""
        requests = [self.requests.insert(entity(partition, _MARKED)) for partition in self._written()]
        return Workload("durable insert", "entities", 1, connections, 204, requests, entities=self.entities)

    def insert_anywhere(self) -> Workload:
        """Insert single entities into so many partitions that two requests for the same one seldom meet."""
        partitions = [f"w{number:04d}" for number in range(MANY_PARTITIONS)]
        requests = [self.requests.insert(entity(partition, _MARKED)) for partition in partitions]
        name = f"durable insert into {MANY_PARTITIONS:,} partitions"
        return Workload(name, "entities", 1, 64, 204, requests, entities=self.entities)

    def merge(self) -> Workload:
        """Insert or merge single entities of some partitions: the first time they are inserted."""
        keys = [(partition, f"m{row:02d}") for row in range(MERGED_ROWS) for partition in self._written()]
        requests = [self.requests.merge(*key, entity(*key)) for key in keys]
        return Workload("durable merge", "entities", 1, 64, 204, requests, entities=self.entities)

    def insert_wide(self, properties: int) -> Workload:
        """Insert single entities of so many properties."""
        requests = [self.requests.insert(wide_entity(part, _MARKED, properties)) for part in self._written()]
        return Workload("durable insert by properties", "entities", 1, 64, 204, requests, variant=str(properties))

    def transaction(self, rows: int = TRANSACTION_ROWS) -> Workload:
        """Insert so many entities at a time, all or nothing."""
        keys = [f"{_MARKED}-{number:02d}" for number in range(rows)]
        requests = [self.requests.transaction([entity(part, key) for key in keys]) for part in self._written()]
        name = "entity group transaction" if rows == TRANSACTION_ROWS else "entity group transaction by size"
        return Workload(name, "entities", rows, 4, 202, requests, _INSERTED, entities=self.entities)

    def pages(self, name: str) -> Workload:
        """Query whole partitions of 1,000 entities, in one of the ways of `PAGES`."""
        query, accept = PAGES[name]
        filters = sorted({f"PartitionKey eq '{partition_key(number)}'" for number in self._numbers})
        requests = [
            self.requests.raw("GET", f"{TABLE}()", f"$filter={quote(text)}{query}", accept=accept) for text in filters
        ]
        witness = b'"Text"' if query else _ENTITY
        rows = min(self.entities, PARTITION_ROWS)
        return Workload(name, "entities", rows, 4, 200, requests, witness, entities=self.entities)

    def ranges(self) -> Workload:
        """Query 100 neighbours in a random partition."""
        filters = []
        for number in self._numbers:
            start = number % PARTITION_ROWS // RANGE_ROWS * RANGE_ROWS
            rows = f"RowKey ge '{row_key(start)}' and RowKey le '{row_key(start + RANGE_ROWS - 1)}'"
            filters.append(f"PartitionKey eq '{partition_key(number)}' and {rows}")
        requests = [self.requests.raw("GET", f"{TABLE}()", f"$filter={quote(text)}") for text in filters]
        return self._read("range of 100", "entities", RANGE_ROWS, 4, requests)

    def scan(self) -> Workload:
        """Scan a partition with a filter of two terms on other properties, which one row in 1,000 meets."""
        text = f"PartitionKey eq '{SCAN_PARTITION}' and Count eq {COUNT_BASE + 500}L and Ratio lt 0.5"
        requests = [self.requests.raw("GET", f"{TABLE}()", f"$filter={quote(text)}")]
        results = SCAN_ROWS // 1000
        return Workload("partition scan with a filter", "entities", SCAN_ROWS, 4, 200, requests, _ENTITY, results)

    def table_scan(self) -> bytes:
        """Return a request for the matches in the whole table, of which there are next to none."""
        text = f"Count eq {COUNT_BASE + 500}L and Ratio gt 0.5"
        return self.requests.raw("GET", f"{TABLE}()", f"$filter={quote(text)}")

    def _paths(self) -> list[str]:
        keys = [(partition_key(number), row_key(number)) for number in self._numbers]
        return [f"{TABLE}(PartitionKey='{partition}',RowKey='{row}')" for partition, row in keys]

    def _written(self) -> list[str]:
        return [f"w{number:02d}" for number in range(WRITE_PARTITIONS)]

    def _read(
        self, name: str, unit: str, units: int, connections: int, requests: list[bytes], variant: str = ""
    ) -> Workload:
        return Workload(name, unit, units, connections, 200, requests, _ENTITY, variant=variant, entities=self.entities)
