"""The sweep of one shard: it removes the expired messages, a few at a time.

See `expirations` for the order of its commits.
"""

from contextlib import aclosing
from dataclasses import dataclass

from lazulite.engine.contract import Clock, Engine, KeyRange
from lazulite.protocol.clock import LAST_TICK, TICKS_PER_SECOND
from lazulite.queue.model.expirations import SLOT_TICKS, Expirations, slot_of
from lazulite.queue.model.message import index_row_at, partition_of, read_index
from lazulite.queue.model.moves import STATE_ROW, Scheduled
from lazulite.queue.model.sweep import BeginSweep, EndSweep, RemoveExpired

TOGETHER_MAX = 64
"""Messages that are removed by one commit: about a millisecond of the event loop."""
LATE_TICKS = 600 * TICKS_PER_SECOND
"""A put commits sooner after it has scheduled its shard: longer than any request takes."""


@dataclass(slots=True)
class Unswept:
    """The expired messages of a shard that a sweep has counted and not removed yet."""

    messages: int = 0
    until: int = 0
    """Those that expired until then are counted; 0: none are."""


class ShardSweep:
    """Sweeps one shard.

    Args:
        engine: holds the rows.
        space: of the queue.
        number: of the shard, from 0.
        expirations: when shards are swept.
    """

    def __init__(self, engine: Engine, space: int, number: int, expirations: Expirations) -> None:
        self._engine = engine
        self._space = space
        self._number = number
        self._expirations = expirations
        self._partition = partition_of(number)

    async def run(self, present: Clock, since: int, removed_max: int, unswept: Unswept) -> tuple[int, bool | None]:
        """Remove messages that have expired, and schedule the shard for the next ones.

        Args:
            present: the time now.
            since: the time for which the shard was scheduled.
            removed_max: about so many messages are removed at most.
            unswept: what sweeps of the shard have left so far.

        Returns:
            How many were removed, and whether there are no more; None: that cannot be said yet, for a put may have
            scheduled the shard and not committed its first message.
        """
        begin = BeginSweep()
        await self._engine.commit(self._space, self._partition, [STATE_ROW], begin)
        if begin.state is None:
            return 0, True if since + LATE_TICKS <= present() else None
        removed, start, now = 0, index_row_at(max(0, since - SLOT_TICKS)), present()
        while expired := await self._index_rows(start, index_row_at(now + 1), TOGETHER_MAX):
            if removed >= removed_max:
                return removed, False
            if len(expired) == TOGETHER_MAX and unswept.until < now:
                unswept.messages += await self._count(max(start, index_row_at(unswept.until + 1)), now)
                unswept.until = now
            remove = RemoveExpired(expired)
            await self._engine.commit(self._space, self._partition, remove.rows, remove)
            removed += remove.removed
            unswept.messages = max(0, unswept.messages - remove.removed)
            if not remove.moved:
                start = expired[-1][0] + "\0"
        if begin.state.messages > removed:
            await self._schedule_next(now, begin.state.sweeps)
        return removed, True

    async def _schedule_next(self, now: int, sweeps: int) -> None:
        """Schedule the shard for the first message that expires later.

        Each step of the search has a bound: it may pass the tombstones of many deleted messages.
        """
        start, ticks = now + 1, SLOT_TICKS
        while start < LAST_TICK:
            end = min(start + ticks, LAST_TICK)
            for row, value in await self._index_rows(index_row_at(start), index_row_at(end), 1):
                scheduled = Scheduled(slot_of(read_index(row, value)[0]), sweeps)
                await self._expirations.schedule(self._space, self._number, scheduled.due)
                await self._engine.commit(self._space, self._partition, [STATE_ROW], EndSweep(scheduled))
                return
            start, ticks = end, ticks * 4

    async def _count(self, start: str, now: int) -> int:
        key_range = KeyRange((self._partition, start), (self._partition, index_row_at(now + 1)))
        async with aclosing(self._engine.scan(self._space, [key_range], keys_only=True)) as slices:
            return sum([len(part.values) async for part in slices])

    async def _index_rows(self, start: str, end: str, rows_max: int) -> list[tuple[str, bytes]]:
        key_range = KeyRange((self._partition, start), (self._partition, end))
        found: list[tuple[str, bytes]] = []
        async with aclosing(self._engine.scan(self._space, [key_range], rows_max)) as slices:
            async for part in slices:
                found += zip(part.columns()[1], part.values, strict=True)
        return found
