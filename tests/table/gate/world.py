"""Two clients of one store, one of them behind a gate, in a clock that the test moves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lazulite.engine.contract import Engine
from lazulite.partitions.live import LivePartitions
from lazulite.partitions.map_store import Balance, Maps, ProcessMaps, TableLoads
from lazulite.partitions.ranges import Range, RangeMap, TableKey
from lazulite.partitions.targets import CURRENT, Balancing, Rate, Targets
from lazulite.protocol.message import Response
from tests.table.batches import CONTENT_TYPE, Operation, change_set
from tests.table.client import Client, header, values

NARROW = replace(
    CURRENT, partition=Rate(10, 10), account=Rate(1_000, 1_000), server_cap=40, timeout_share=0, balancing=Balancing()
)
"""Targets that a test reaches with a few requests."""
WIDE = replace(CURRENT, partition=Rate(1e9, 1e9), account=Rate(1e9, 1e9), indexes=True)
"""Targets that no test reaches, with queries by indexes."""


class GivenMaps(ProcessMaps):
    """A store whose maps the test gives: the balancer makes none."""

    def __init__(self) -> None:
        self.given: dict[TableKey, RangeMap] = {}

    async def take_turn(self, maps: Maps, loads: TableLoads, now: float, seconds: float, balance: Balance) -> Maps:
        """See `MapStore`."""
        return {**maps, **self.given}


class World:
    """See above.

    Args:
        engine: holds the rows.
        targets: of the gate.
    """

    def __init__(self, engine: Engine, targets: Targets = NARROW) -> None:
        self.engine = engine
        self.now = 1_000_000.0
        self.slept: list[float] = []
        self.maps = GivenMaps()
        self.live = LivePartitions(targets, lambda: self.now, self._sleep, maps=self.maps)
        self.client = Client(engine, gate=self.live)
        self.plain = Client(engine)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def divide(self, *starts: str, servers: Sequence[int] = (0, 1, 2, 3), moving: str | None = None) -> None:
        """Give the only table, which has been asked for, ranges with these starts beside the first one."""
        (table,) = self.live.maps
        ranges = [
            Range(start, servers[index % len(servers)], self.now, self.now + 15 if start == moving else 0)
            for index, start in enumerate(("", *starts))
        ]
        self.maps.given[table] = RangeMap(tuple(ranges))
        self.now += 15
        await self.live.refresh()
        self.now -= 5  # So that what moves does so for 5 seconds more.

    async def insert(self, partition: str, row: str = "r", **properties: object) -> Response:
        return await self.client("POST", "Orders", body={"PartitionKey": partition, "RowKey": row, **properties})

    async def get(self, partition: str, row: str = "r") -> Response:
        return await self.client("GET", f"Orders(PartitionKey='{partition}',RowKey='{row}')")

    async def batch(self, partition: str, count: int, first: int = 0) -> Response:
        """Insert or replace many entities of a partition at once."""
        operations = [
            Operation("PUT", f"Orders(PartitionKey='{partition}',RowKey='{number}')", {"V": 1})
            for number in range(first, first + count)
        ]
        return await self.client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)


async def pages(client: Client, query: str = "") -> list[list[dict[str, Any]]]:
    """Return the pages of a query, which is read by its tokens to the end."""
    found: list[list[dict[str, Any]]] = []
    more: str | None = ""
    while more is not None:
        response = await client("GET", "Orders()", "&".join(filter(None, (query, more))))
        assert response.status == 200, response
        found.append(values(response))
        more = continuation(response)
    return found


def continuation(response: Response) -> str | None:
    """Return the query parameters of the next page; None if there is none."""
    tokens = [header(response, f"x-ms-continuation-Next{name}Key") for name in ("Partition", "Row")]
    return None if tokens[0] is None else f"NextPartitionKey={tokens[0]}&NextRowKey={tokens[1]}"
