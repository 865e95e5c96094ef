"""Removing the entities that have expired, beside requests.

A sweep reads each table that declares when its entities expire, a step of rows at a time. It rests nine times as long
as a step took. Invariant: an entity is removed only if it has expired at the Timestamp of the commit that does so, and
its entries in indexes go with it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from itertools import groupby, islice

from lazulite.engine.commit import Commit, Decision, Values
from lazulite.engine.contract import Clock, Engine, Key, KeyRange, SpaceDroppedError
from lazulite.table.catalog import Catalog, Table
from lazulite.table.expiry.definition import Expiry
from lazulite.table.indexes.entries import maintenance_of

SWEEP_SECONDS = 300
"""The pause between two sweeps."""
_ROWS_OF_A_STEP = 1000
_ROWS_OF_A_COMMIT = 100
_COMMITS_AT_ONCE = 32
"""Commits that share the flushes of the store: a table may have one row in each partition."""
_REST = 9
"""How long a sweep rests, as a multiple of the time of a step."""


class ExpirySweep:
    """Removes the entities of all tables that have expired.

    Args:
        engine: holds the rows.
        clock: tells in ticks what has expired.
        monotonic: returns the time in seconds.
        sleep: rests for so many seconds.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._engine = engine
        self._catalog = Catalog(engine)
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep

    async def run(self) -> int:
        """Sweep all tables once; return how many entities were removed.

        Raises:
            EngineError: the store failed, or a table has changed meanwhile. The next sweep goes on.
        """
        async with aclosing(self._catalog.with_indexes()) as tables:
            found = [each async for each in tables if each[1].indexes.expiry is not None]
        removed = 0
        for account, table in found:
            with suppress(SpaceDroppedError):
                removed += await self._sweep(account, table)
        return removed

    async def _sweep(self, account: str, table: Table) -> int:
        expiry, removed = table.indexes.expiry, 0
        assert expiry is not None, "such a table was asked for"
        start: Key | None = ("", "")
        while start is not None:
            started = self._monotonic()
            keys, start = await self._expired(table.space, expiry, start)
            commits = _of_commits(keys)
            while some := list(islice(commits, _COMMITS_AT_ONCE)):
                # As it is now: a commit must keep the indexes that the table has.
                current = await self._catalog.read(account, table.name)
                if current is None or current.space != table.space or current.indexes.expiry != expiry:
                    return removed
                removed += sum(await asyncio.gather(*(self._remove(current, *each) for each in some)))
            await self._sleep((self._monotonic() - started) * _REST)
        return removed

    async def _expired(self, space: int, expiry: Expiry, start: Key) -> tuple[list[Key], Key | None]:
        """Return the keys of what has expired among the next rows, and where the rows behind them start, if any do."""
        now, found, count = self._clock(), list[Key](), 0
        last = start
        step = self._engine.scan(space, [KeyRange(start, None)], _ROWS_OF_A_STEP)
        async with aclosing(step) as parts:
            async for part in parts:
                values = part.values
                found += [part.key(index) for index, value in enumerate(values) if expiry.is_over(value, now)]
                if values:
                    count, last = count + len(values), part.key(len(values) - 1)
        return found, (last[0], f"{last[1]}\0") if count == _ROWS_OF_A_STEP else None

    async def _remove(self, table: Table, partition: str, rows: Sequence[str]) -> int:
        """Remove those of some rows that have expired; return how many."""
        expiry = table.indexes.expiry
        assert expiry is not None, "it is as it was"

        def decide(values: Values, timestamp: int) -> Decision[int]:
            over = {
                row: value
                for row, value in zip(rows, values, strict=True)
                if value is not None and expiry.is_over(value, timestamp)
            }
            changes = dict.fromkeys(over)
            return Decision(changes, len(over), [*maintenance_of(table.indexes).changes(partition, over, changes)])

        return await self._engine.commit(table.space, partition, Commit(rows, decide, fence=table.indexes.version))


def _of_commits(keys: Sequence[Key]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the partition and the rows of each commit."""
    for partition, of_partition in groupby(keys, lambda key: key[0]):
        rows = [row for _, row in of_partition]
        for at in range(0, len(rows), _ROWS_OF_A_COMMIT):
            yield partition, rows[at : at + _ROWS_OF_A_COMMIT]
