"""Writes what a process has counted to the store, and the rows of the metrics tables of intervals that have ended.

Each process of a store does the same. A *round* has two steps:

1. What was counted since the last round is added to the rows of its intervals (`interval_counts`), each the total of
   all processes. A process that is killed loses what it has counted since.
2. The rows of intervals that have ended are written to the metrics tables, also where nothing was counted. If a total
   has grown since, by another process or by a request that took long, the rows are written again.

Invariants: no request waits for a round. Each step may be repeated, so a round that failed is made up by the next one,
and nothing is counted twice. Memory is bounded by the counter.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from typing import TypeAlias

from lazulite.analytics import interval_counts
from lazulite.analytics.exchange_buffer import AnalyticsCounts
from lazulite.analytics.metrics import (
    LATE_TICKS,
    TICKS,
    IntervalKey,
    MetricsCounter,
    Series,
    requests_in,
    rows,
)
from lazulite.analytics.metrics_tables import MetricsTables
from lazulite.engine.contract import Clock, Engine, EngineError, KeyRange
from lazulite.records.spaces import SERVICE_PROPERTIES
from lazulite.service.properties import ServiceProperties

Asked: TypeAlias = Mapping[tuple[str, str], ServiceProperties]
"""The properties that were ever set, by account and service."""

CAUGHT_UP_MAX = 60
"""The intervals without requests of a series that a round makes up for, if rounds failed or the clock was set."""


class MetricsWriter:
    """The rounds of one process.

    Args:
        engine: of the store.
        counter: has what the process counts.
        clock: the time now.
        process: a name that no other process has, nor had.
        has_account: tells whether an account exists.
        counts: what became of requests; rounds that fail are noted there.
    """

    def __init__(
        self,
        engine: Engine,
        counter: MetricsCounter,
        clock: Clock,
        process: str,
        has_account: Callable[[str], bool],
        counts: AnalyticsCounts,
    ) -> None:
        self._engine = engine
        self._counter = counter
        self._clock = clock
        self._process = process
        self._has_account = has_account
        self.counts = counts
        self._tables = MetricsTables(engine)
        self._changed: set[IntervalKey] = set()
        """Counted, but not written."""
        self._unpublished: set[IntervalKey] = set()
        """Written since they were published."""
        self._next: dict[Series, int] = {}
        """The start of the interval that is published next."""

    async def run(self, seconds: float) -> None:
        """Make a round every so many seconds."""
        while True:
            await asyncio.sleep(seconds)
            await self.round()

    async def round(self) -> None:
        """Make a round; what fails is left to the next one."""
        try:
            await self._round()
        except EngineError:
            self.counts.failed_rounds += 1

    async def _round(self) -> None:
        now = self._clock()
        self._changed |= self._counter.fold()
        asked = await read_asked(self._engine, self._has_account)
        await self._write_counts(asked)
        for series in _series(asked):
            await self._publish_series(series, asked[series.account, series.service], now)
        self._counter.forget(now - LATE_TICKS, self._changed)

    async def flush(self) -> None:
        """Write what was counted, at the end of the process. A later process publishes it."""
        self._changed |= self._counter.fold()
        try:
            await self._write_counts(await read_asked(self._engine, self._has_account))
        except EngineError:
            self.counts.failed_rounds += 1

    async def _write_counts(self, asked: Asked) -> None:
        """Do step 1. Counts that no account asks for any more are released."""
        for key in sorted(self._changed):
            series = key.series
            properties = asked.get((series.account, series.service))
            if properties is not None and series.metrics(properties).enabled:
                await interval_counts.put(self._engine, key, self._process, self._counter.total(key))
                self._unpublished.add(key)
            self._changed.discard(key)

    async def _publish_series(self, series: Series, properties: ServiceProperties, now: int) -> None:
        """Do step 2 for a table."""
        ticks = TICKS[series.period]
        following = self._next.setdefault(series, now // ticks * ticks)
        await self._tables.ensure(series.account, series.table)
        due = {key for key in self._unpublished if key.series == series and key.end <= now}
        first = max(following, (now // ticks - CAUGHT_UP_MAX) * ticks)
        due |= {IntervalKey(series, start) for start in range(first, now - ticks + 1, ticks)}
        for key in sorted(due):
            await self.publish(key, properties)
            self._next[series] = max(self._next[series], key.end)

    async def publish(self, key: IntervalKey, properties: ServiceProperties) -> None:
        """Write the rows of an interval that has ended, unless they have its total already. Raises `EngineError`."""
        series = key.series
        found = await interval_counts.read(self._engine, key)
        table = await self._tables.ensure(series.account, series.table)
        total = requests_in(found.total)
        include_apis = bool(series.metrics(properties).include_apis)
        await self._tables.publish(table, key.partition, rows(found.total, include_apis=include_apis), total)
        if not found.is_published:
            await interval_counts.note_published(self._engine, key, total)
        self._unpublished.discard(key)


async def read_asked(engine: Engine, has_account: Callable[[str], bool]) -> Asked:
    """Return the properties of all accounts that exist. Raises `EngineError`."""
    found: dict[tuple[str, str], ServiceProperties] = {}
    async with aclosing(engine.scan(SERVICE_PROPERTIES, [KeyRange(("", ""), None)])) as slices:
        async for part in slices:
            for index, value in enumerate(part.values):
                account, service = part.key(index)
                if has_account(account):
                    found[account, service] = ServiceProperties.from_json(json.loads(value))
    return found


def all_series(account: str, service: str) -> Iterator[Series]:
    """Yield the tables that a service can have."""
    for period in TICKS:
        for is_secondary in (False, True):
            yield Series(account, service, period, is_secondary)


def _series(asked: Asked) -> Iterator[Series]:
    """Yield the tables that are asked for."""
    for (account, service), properties in asked.items():
        yield from (each for each in all_series(account, service) if each.metrics(properties).enabled)
