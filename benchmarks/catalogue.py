"""The workloads by name, for one server whose table holds so many entities."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from random import Random
from urllib.parse import quote

from benchmarks.entities import COUNT_BASE, PARTITION_ROWS, TRANSACTION_ROWS, entity, partition_key, row_key
from benchmarks.requests import MINIMAL, TABLE, Builder
from benchmarks.workload import MARK, Workload

PAGE = "full-page query"
PAGES = {
    PAGE: ("", MINIMAL),
    f"{PAGE}, $select": ("&$select=Count,Text", MINIMAL),
    f"{PAGE}, nometadata": ("", "application/json;odata=nometadata"),
    f"{PAGE}, fullmetadata": ("", "application/json;odata=fullmetadata"),
}
"""By name: an addition to the query, and the media type to accept."""
WRITE_PARTITIONS, MANY_PARTITIONS = 16, 1024
MERGED_ROWS = 100  # of each partition that is written to
SCAN_PARTITION, SCAN_ROWS = "scan", 10_000
RANGE_ROWS, SLICE_ROWS = 100, 100_000
SPREAD_ROWS = 10_000
KEYS_MAX = 50_000  # Reads visit at most this many keys, chosen over the whole table.

_MARKED = MARK.decode()
_ENTITY, _INSERTED = b'"RowKey"', b" 204 No Content"
_WRITTEN = [f"w{number:02d}" for number in range(WRITE_PARTITIONS)]


class Catalogue(Builder):
    """Builds the workloads of a table; its entities are a multiple of 100."""

    service = "table"

    @cached_property
    def _numbers(self) -> list[int]:
        """The entities that are read: the same in every run."""
        return Random(1).sample(range(self.entities), min(self.entities, KEYS_MAX))

    def create(self) -> bytes:
        """Return the request that creates the table."""
        return self.requests.create_table()

    def fill(self, rows: int, build: Callable[[int], bytes]) -> Workload:
        """Return transactions that store so many entities, made of their numbers; each is to be sent once."""
        starts = range(0, rows, TRANSACTION_ROWS)
        batches = [self.requests.transaction([build(start + n) for n in range(TRANSACTION_ROWS)]) for start in starts]
        return self._batches("load", batches)

    def preload(self) -> Workload:
        """Return transactions that fill partition after partition: ten to each, with its number."""
        partition = self.fill(PARTITION_ROWS, lambda number: entity(f"r{_MARKED}", row_key(number), number))
        return replace(partition, sharing=PARTITION_ROWS // TRANSACTION_ROWS)

    def spread_preload(self) -> Workload:
        """Return transactions that each fill a partition of their own."""
        return self.fill(SPREAD_ROWS, lambda number: entity(f"t{_MARKED}", row_key(number), number))

    def scan_preload(self) -> Workload:
        """Return transactions that fill the partition to scan."""
        return self.fill(SCAN_ROWS, lambda number: entity(SCAN_PARTITION, f"{number:06d}", number))

    def get(self, connections: int = 32, *, signed: bool = False) -> Workload:
        """Read single entities, authorized by SAS, or each request signed with the account's key."""
        name, build = ("Shared Key", self.requests.signed) if signed else ("SAS", self.requests.raw)
        paths = [f"{TABLE}(PartitionKey='{partition_key(n)}',RowKey='{row_key(n)}')" for n in self._numbers]
        return self._read(f"point GET, {name}", 1, [build("GET", path) for path in paths], connections)

    def insert(self, connections: int = 64, partitions: int = WRITE_PARTITIONS) -> Workload:
        """Insert single entities, durably, into so many partitions in turn."""
        name = "" if partitions == WRITE_PARTITIONS else f" into {partitions:,} partitions"
        requests = [self.requests.insert(entity(f"w{number:02d}", _MARKED)) for number in range(partitions)]
        return Workload(f"durable insert{name}", 1, connections, 204, requests, entities=self.entities)

    def merge(self) -> Workload:
        """Insert or merge single entities of some partitions: the first time they are inserted."""
        keys = [(partition, f"m{row:02d}") for row in range(MERGED_ROWS) for partition in _WRITTEN]
        requests = [self.requests.merge(*key, entity(*key)) for key in keys]
        return Workload("durable merge", 1, 64, 204, requests, entities=self.entities)

    def transaction(self, connections: int = 4) -> Workload:
        """Insert a hundred entities at a time, all or nothing."""
        keys = [f"{_MARKED}-{number:02d}" for number in range(TRANSACTION_ROWS)]
        requests = [self.requests.transaction([entity(part, key) for key in keys]) for part in _WRITTEN]
        return self._batches("entity group transaction", requests, connections)

    def pages(self, name: str = PAGE, connections: int = 4) -> Workload:
        """Query whole partitions of 1,000 entities, in one of the ways of `PAGES`."""
        query, accept = PAGES[name]
        filters = sorted({f"PartitionKey eq '{partition_key(number)}'" for number in self._numbers})
        requests = [self._query(text, query, accept) for text in filters]
        pages = self._read(name, min(self.entities, PARTITION_ROWS), requests, connections)
        return replace(pages, witness=b'"Text"' if query else _ENTITY)

    def ranges(self) -> Workload:
        """Query 100 neighbours in a random partition."""
        filters = []
        for number in self._numbers:
            start = number % PARTITION_ROWS // RANGE_ROWS * RANGE_ROWS
            rows = f"RowKey ge '{row_key(start)}' and RowKey le '{row_key(start + RANGE_ROWS - 1)}'"
            filters.append(f"PartitionKey eq '{partition_key(number)}' and {rows}")
        return self._read("range of 100", RANGE_ROWS, list(map(self._query, filters)))

    def scan(self) -> Workload:
        """Scan a partition with a filter of two terms on other properties, which one row in 1,000 meets."""
        text = f"PartitionKey eq '{SCAN_PARTITION}' and Count eq {COUNT_BASE + 500}L and Ratio lt 0.5"
        scan = self._read("partition scan with a filter", SCAN_ROWS, [self._query(text)])
        return replace(scan, results=SCAN_ROWS // 1000, entities=0)

    def spread_pages(self) -> Workload:
        """Query a page over ten of the partitions of `spread_preload`."""
        starts = range(SPREAD_ROWS // TRANSACTION_ROWS - PARTITION_ROWS // TRANSACTION_ROWS + 1)
        requests = [self._query(f"PartitionKey ge 't{start:012d}'") for start in starts]
        return self._read("page of a table scan", PARTITION_ROWS, requests)

    def table_scan(self) -> Workload:
        """Scan the whole table, slice after slice, with a filter that next to no entity meets."""
        bounds = pairwise(map(partition_key, range(0, self.entities + SLICE_ROWS, SLICE_ROWS)))
        test = f"Count eq {COUNT_BASE + 500}L and Ratio gt 0.5"
        requests = [self._query(f"PartitionKey ge '{low}' and PartitionKey lt '{up}' and {test}") for low, up in bounds]
        return self._read("scan of the table", min(self.entities, SLICE_ROWS), requests)

    def _query(self, text: str, more: str = "", accept: str = MINIMAL) -> bytes:
        return self.requests.raw("GET", f"{TABLE}()", f"$filter={quote(text)}{more}", accept=accept)

    def _batches(self, name: str, requests: list[bytes], connections: int = 4) -> Workload:
        return Workload(name, TRANSACTION_ROWS, connections, 202, requests, _INSERTED, entities=self.entities)

    def _read(self, name: str, units: int, requests: list[bytes], connections: int = 4) -> Workload:
        return Workload(name, units, connections, 200, requests, _ENTITY, entities=self.entities)
