"""What one process of a store does for the metrics of all, now and then.

- Totals that a process left behind when it ended are published.
- Rows that are older than the retention of their table are removed, also if the metrics are off by now.
- The capacity of the blobs of an account is measured once a day, if the Blob service has hour metrics.

Source: Metrics Table Schema; *Setting a Retention Policy*. *Unverified*: the rows of the capacity are kept as those of
the hours are.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import aclosing
from typing import NamedTuple

from lazulite.analytics import interval_counts
from lazulite.analytics.metrics import partition_of
from lazulite.analytics.metrics_tables import CAPACITY_TABLE, MetricsTables
from lazulite.analytics.metrics_writer import Asked, MetricsWriter, all_series, read_asked
from lazulite.blob.model.blob import read_blob
from lazulite.blob.model.block import read_heads
from lazulite.blob.model.rows import CURRENT, SNAPSHOT, UPLOAD, VERSION
from lazulite.blob.storage.catalog import Catalog as Containers
from lazulite.engine.contract import Clock, Engine, EngineError, KeyRange
from lazulite.protocol.clock import TICKS_PER_DAY, TICKS_PER_SECOND
from lazulite.service.properties import RetentionPolicy, ServiceProperties

SECONDS = 600
"""The seconds between two checks whether the upkeep is due."""
_HELD_TICKS = 2 * SECONDS * TICKS_PER_SECOND
"""How long another process leaves the upkeep to the one that did it last."""
_LOGS = "$logs"
_ROWS_A_STEP = 32
"""Rows of blobs that are read in one step of the event loop."""


class Capacity(NamedTuple):
    """What blobs take."""

    length: int = 0
    """In bytes, with snapshots, versions and uncommitted blocks."""
    containers: int = 0
    objects: int = 0
    """Committed and uncommitted blobs."""

    def plus(self, other: "Capacity") -> "Capacity":
        """Return the sum."""
        return Capacity(*(mine + its for mine, its in zip(self, other, strict=True)))

    def columns(self) -> dict[str, int | float]:
        """Return the columns of a row."""
        return {"Capacity": self.length, "ContainerCount": self.containers, "ObjectCount": self.objects}


class MetricsUpkeep:
    """The upkeep of one process.

    Args:
        engine: of the store.
        writer: of the process.
        clock: the time now.
        process: the name of the process.
        has_account: tells whether an account exists.
    """

    def __init__(
        self, engine: Engine, writer: MetricsWriter, clock: Clock, process: str, has_account: Callable[[str], bool]
    ) -> None:
        self._engine = engine
        self._writer = writer
        self._clock = clock
        self._process = process
        self._has_account = has_account
        self._tables = MetricsTables(engine)
        self._containers = Containers(engine, clock)

    async def run(self, schedule: Callable[[Coroutine[object, None, None]], Awaitable[None]]) -> None:
        """Do what is due, again and again, as a function schedules work that no request waits for."""
        while True:
            await schedule(self.maintain())
            await asyncio.sleep(SECONDS)

    async def maintain(self) -> None:
        """Do what is due, unless another process does it; what fails is left to the next time."""
        now = self._clock()
        try:
            asked = await read_asked(self._engine, self._has_account)
            if await self._is_needed(asked) and await self._takes_it(now):
                await self._publish_rest(asked, now)
                for (account, service), properties in asked.items():
                    await self._retain(account, service, properties, now)
                    if service == "blob" and properties.hour_metrics.enabled:
                        await self._measure(account, now)
        except EngineError:
            self._writer.counts.failed_rounds += 1

    async def _is_needed(self, asked: Asked) -> bool:
        """Return whether there is anything to do: without metrics, nothing is written."""
        metrics = [each for found in asked.values() for each in (found.hour_metrics, found.minute_metrics)]
        if any(each.enabled or each.retention.enabled for each in metrics):
            return True
        async with aclosing(interval_counts.all_rows(self._engine)) as found:
            return await anext(found, None) is not None

    async def _takes_it(self, now: int) -> bool:
        return await interval_counts.take_upkeep(self._engine, self._process, now, now + _HELD_TICKS)

    async def _publish_rest(self, asked: Asked, now: int) -> None:
        async with aclosing(interval_counts.all_rows(self._engine)) as found:
            async for key, counts in found:
                if key.end > now:
                    continue
                series = key.series
                properties = asked.get((series.account, series.service))
                if properties is not None and series.metrics(properties).enabled and not counts.is_published:
                    await self._writer.publish(key, properties)
                if key.end + interval_counts.KEPT_TICKS < now:
                    await interval_counts.remove(self._engine, key)

    async def _retain(self, account: str, service: str, properties: ServiceProperties, now: int) -> None:
        for name, policy in _policies(account, service, properties):
            table = await self._tables.find(account, name) if policy.enabled else None
            if table is not None:
                await self._tables.remove_before(table, partition_of(now - (policy.days or 0) * TICKS_PER_DAY))

    async def _measure(self, account: str, now: int) -> None:
        """Write the rows of this day, unless they are there."""
        day = partition_of(now // TICKS_PER_DAY * TICKS_PER_DAY)
        table = await self._tables.ensure(account, CAPACITY_TABLE)
        if await self._tables.has(table, day, "data"):
            return
        found = {"data": Capacity(), "analytics": Capacity()}
        async with aclosing(self._containers.list(account, "")) as containers:
            async for each in containers:
                row = "analytics" if each.name == _LOGS else "data"
                found[row] = found[row].plus(await self._capacity_of(each.space))
        await self._tables.put(table, day, ((row, capacity.columns()) for row, capacity in found.items()))

    async def _capacity_of(self, space: int) -> Capacity:
        length, objects, counted = 0, 0, ""
        async with aclosing(self._rows(space)) as rows:
            async for name, row, value in rows:
                kind = row[:1]
                if kind == UPLOAD:
                    length += sum(block.length for block in read_heads(value)[1])
                elif kind in (CURRENT, SNAPSHOT, VERSION):
                    length += read_blob(value).length
                if name != counted and kind in (CURRENT, UPLOAD):
                    objects, counted = objects + 1, name
        return Capacity(length, 1, objects)

    async def _rows(self, space: int) -> AsyncGenerator[tuple[str, str, bytes], None]:
        async with aclosing(self._engine.scan(space, [KeyRange(("\x01", ""), None)])) as slices:
            async for part in slices:
                for index, value in enumerate(part.values):
                    yield *part.key(index), value
                    if not index % _ROWS_A_STEP:
                        await asyncio.sleep(0)


def _policies(account: str, service: str, properties: ServiceProperties) -> Iterator[tuple[str, RetentionPolicy]]:
    for series in all_series(account, service):
        yield series.table, series.metrics(properties).retention
    if service == "blob":
        yield CAPACITY_TABLE, properties.hour_metrics.retention
