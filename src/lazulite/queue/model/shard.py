"""One shard of a queue, as this process knows it: a partition of the queue's space.

Invariant: no row appears below `_lowest_new()`, whichever process writes it. If this process alone writes to the shard,
that is the present, or the lowest row of a commit in flight. Otherwise it is the barrier that is known here, which is
not above the stored one. Each row below that bound expires within the lifetime that is known here.

A sweep removes the expired messages of a shard, a few at a time. See `expirations` for the order of its commits.
"""

import asyncio
from collections.abc import Callable, Container, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lazulite.engine.commit import Commit, Decision, Values, put_rows
from lazulite.engine.contract import UNKNOWN, Clock, Engine, EngineError, KeyRange
from lazulite.protocol.clock import LAST_TICK, TICKS_PER_SECOND
from lazulite.queue.model.expirations import SLOT_TICKS, Expirations, slot_of
from lazulite.queue.model.message import (
    Message,
    MessageId,
    MessagePosition,
    expires_at,
    index_row_at,
    partition_of,
    read_index,
    read_message,
    row_at,
    row_of,
    row_of_index,
)
from lazulite.queue.model.moves import (
    CLOSED,
    STATE_ROW,
    BarrierError,
    Move,
    MoveMessages,
    Scheduled,
    ShardState,
    UnscheduledError,
    read_state,
)

_SWEEPS_END = 1 << 32

TOGETHER_MAX = 64
"""Messages that are removed by one commit: about a millisecond of the event loop."""
LATE_TICKS = 600 * TICKS_PER_SECOND
"""A put commits sooner after it has scheduled its shard: longer than any request takes."""

BARRIER_TICKS = TICKS_PER_SECOND
"""How far behind the present a raised barrier is, so that commits under way are not rejected."""
EXPIRED_MAX = 256
"""So many expired messages at the head make a read raise the barrier, so that the next read begins behind them."""
_NEXT_ROWS_MIN = 64
"""Rows that are read at once behind those that were skipped or have expired."""
STORED_TICKS = 30 * TICKS_PER_SECOND
"""How far the stored floor may be behind, while deleted rows are ahead, before it is stored without another change."""


def begin_sweep() -> Commit[ShardState | None]:
    """Return the commit that begins a sweep: from now on, each put has to schedule the shard itself.

    Its result is the shard after it; None if there is none.
    """
    return Commit([STATE_ROW], _begin)


def _begin(current: Values, _: int) -> Decision[ShardState | None]:
    if current[0] is None:  # Perhaps the space was reclaimed: no row may appear in it.
        return Decision({}, None)
    state = read_state(current[0])
    begun = state._replace(due=LAST_TICK, sweeps=(state.sweeps + 1) % _SWEEPS_END)
    return Decision({STATE_ROW: begun.value}, begun)


class Removed(NamedTuple):
    """What a commit of a sweep has removed."""

    messages: int
    moved: bool
    """Whether some messages have moved, and were left."""


def remove_expired(index_rows: Sequence[tuple[str, bytes]]) -> Commit[Removed]:
    """Return a commit that removes expired messages.

    Args:
        index_rows: with their values. A message that has moved since they were read stays.
    """
    rows = [STATE_ROW]
    for row, value in index_rows:
        rows += (row, row_of_index(row, value))

    def decide(current: Values, _: int) -> Decision[Removed]:
        changes: dict[str, bytes | None] = {}
        removed, moved = 0, False
        for number, (index_row, value) in enumerate(index_rows):
            at = 2 * number + 1
            if current[at] == value:
                changes[index_row] = changes[rows[at + 1]] = None
                removed += current[at + 1] is not None
            elif current[at] is not None:
                moved = True
        state = read_state(current[0])
        changes[STATE_ROW] = state._replace(messages=max(0, state.messages - removed)).value
        return Decision(changes, Removed(removed, moved))

    return Commit(rows, decide)


def end_sweep(scheduled: Scheduled) -> Commit[None]:
    """Return the commit that ends a sweep: no message is due before the time that the shard was scheduled for."""

    def decide(current: Values, _: int) -> Decision[None]:
        state = read_state(current[0])
        if current[0] is None or state.sweeps != scheduled.sweeps:
            return Decision({}, None)  # Another sweep has begun, and ends this way.
        return Decision({STATE_ROW: state._replace(due=min(state.due, scheduled.due)).value}, None)

    return Commit([STATE_ROW], decide)


@dataclass(slots=True)
class SweepBacklog:
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

    async def run(self, present: Clock, since: int, removed_max: int, unswept: SweepBacklog) -> tuple[int, bool | None]:
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
        state = await self._engine.commit(self._space, self._partition, begin_sweep())
        if state is None:
            return 0, True if since + LATE_TICKS <= present() else None
        removed, start, now = 0, index_row_at(max(0, since - SLOT_TICKS)), present()
        while expired := await self._index_rows(start, index_row_at(now + 1), TOGETHER_MAX):
            if removed >= removed_max:
                return removed, False
            if len(expired) == TOGETHER_MAX and unswept.until < now:
                unswept.messages += await self._count(max(start, index_row_at(unswept.until + 1)), now)
                unswept.until = now
            done = await self._engine.commit(self._space, self._partition, remove_expired(expired))
            removed += done.messages
            unswept.messages = max(0, unswept.messages - done.messages)
            if not done.moved:
                start = expired[-1][0] + "\0"
        if state.messages > removed:
            await self._schedule_next(now, state.sweeps)
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
                await self._engine.commit(self._space, self._partition, end_sweep(scheduled))
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


class Head(NamedTuple):
    """The first messages of a shard that are visible and have not expired, in the order of their visibility."""

    messages: list[Message]
    until: int
    """All others became visible at this time or later, except the ones to skip; `LAST_TICK`: there are none."""


class Shard:
    """One shard.

    Args:
        engine: holds the rows.
        space: of the queue.
        number: of the shard, from 0.
        present: the time now, never stepping back.
        expirations: when shards are swept.
        alone: whether only this object writes to the shard.
        on_doubt: called when the outcome of a commit is unknown; no shard made later may be alone.
    """

    def __init__(
        self,
        engine: Engine,
        space: int,
        number: int,
        present: Clock,
        expirations: Expirations,
        *,
        alone: bool = False,
        on_doubt: Callable[[], None] = lambda: None,
    ) -> None:
        self.number = number
        self._engine = engine
        self._space = space
        self._expirations = expirations
        self._partition = partition_of(number)
        self._present = present
        self._state: ShardState | None = None
        self._floor = 0
        """No row below it can be claimed, now or later. The stored floor follows it."""
        self._left_until = 0
        """The latest row that this process has deleted or moved."""
        self._alone = alone
        self._on_doubt = on_doubt
        self._in_flight: dict[MoveMessages, int] = {}
        """By commit in flight, the lowest row that it writes."""
        self._settling: set[asyncio.Task[None]] = set()
        self._first: Sequence[MessagePosition] = ()
        """The messages of the last peek, as far as no row appears before them any more."""
        self._unswept = SweepBacklog()

    @property
    def is_idle(self) -> bool:
        """Whether no commit is in flight that another object for the shard would have to know."""
        return not self._in_flight

    async def state(self) -> ShardState:
        """Return the shard's row as it is now."""
        return read_state(await self._engine.get(self._space, self._partition, STATE_ROW))

    async def know(self) -> ShardState:
        """Return what is known of the shard; read it if that is nothing."""
        if self._state is None:
            self._learn(await self.state())
        assert self._state is not None
        return self._state

    def _learn(self, state: ShardState) -> None:
        """Take in a state that the shard has or had. Its barrier and its lifetime belong together."""
        known = self._state
        if known is not None and (known.barrier > state.barrier or known.lifetime > state.lifetime):
            lifetime = max(known.lifetime, state.lifetime)
            state = (state if state.barrier >= known.barrier else known)._replace(lifetime=lifetime)
        self._state = state
        self._floor = max(self._floor, state.floor)

    def present(self) -> int:
        """Return the time now, not before the barrier."""
        return max(self._present(), 0 if self._state is None else self._state.barrier)

    def _lowest_new(self, state: ShardState, now: int) -> int:
        """Return the bound below which no row appears any more."""
        if self._alone:
            return min(now, *self._in_flight.values()) if self._in_flight else now
        return state.barrier

    def _raise_floor(self, state: ShardState, now: int) -> int:
        """Raise the floor above rows that have expired for certain; return the bound below which no row appears."""
        lowest_new = self._lowest_new(state, now)
        self._floor = max(self._floor, min(now - state.lifetime, lowest_new))
        return lowest_new

    async def claimable(self, rows_max: int, bytes_max: int, skip: Container[MessageId] = (), least: int = 1) -> Head:
        """Return the first messages that are visible and have not expired, and raise the floor.

        Args:
            rows_max: so many rows are read first.
            bytes_max: so many bytes of texts end the list.
            skip: messages to leave out.
            least: so many messages end the list, too.
        """
        state = await self.know()
        now = self.present()
        floor_max = self._raise_floor(state, now)
        end = (self._partition, row_at(now + 1))
        start = row_at(self._floor)
        found: list[Message] = []
        first, expired_count, more = now, 0, True
        while more and len(found) < least and bytes_max > 0:
            rows_count = 0
            key_range = KeyRange((self._partition, start), end)
            async with aclosing(self._engine.scan(self._space, [key_range], rows_max)) as slices:
                async for part in slices:
                    rows_count += len(part.values)
                    for index, value in enumerate(part.values):
                        if expires_at(value) <= now:
                            expired_count += 1
                            continue
                        message = read_message(part.key(index)[1], value)
                        first = min(first, message.visible)
                        if bytes_max > 0 and message.id not in skip:
                            found.append(message)
                            bytes_max -= len(value)
                    if part.values:
                        start = part.key(len(part.values) - 1)[1] + "\0"
            more, rows_max = rows_count >= rows_max, max(rows_max, _NEXT_ROWS_MIN)
        self._floor = max(self._floor, min(first, floor_max))
        if expired_count >= EXPIRED_MAX and self._floor < first and first - BARRIER_TICKS > state.barrier:
            await self.commit([])
        return Head(found, found[-1].visible if found and (more or bytes_max <= 0) else LAST_TICK)

    async def peek(self, count: int, bytes_max: int) -> list[Message]:
        """Return up to so many messages as `claimable` does, and note where they are."""
        settled = self._lowest_new(await self.know(), self.present())
        head = await self.claimable(count, bytes_max, least=count)
        found = sorted(head.messages, key=lambda message: message.order)[:count]
        self._first = [message.place for message in found if message.visible < settled]
        return found

    def peek_now(self, count: int) -> list[Message] | None:
        """Do as the last `peek` in this step, if that found so many messages; None if other ones are the first now."""
        if not self._alone or len(self._first) != count:
            return None
        now, found = self.present(), []
        for row, head, _ in self._first:
            value = self._engine.get_now(self._space, self._partition, row)
            if value is UNKNOWN or value is None or not value.startswith(head) or expires_at(value) <= now:
                return None
            found.append(read_message(row, value))
        return found

    async def find(self, message: MessageId, visible: int) -> Message | None:
        """Return a message by its id and its time of visibility; None if there is none, or if it has expired."""
        row = row_of(visible, message)
        value = await self._engine.get(self._space, self._partition, row)
        found = None if value is None else read_message(row, value)
        return found if found is not None and found.expires > self.present() else None

    async def commit(self, moves: Sequence[Move]) -> Sequence[MessagePosition | None]:
        """Commit moves; return where each message is afterwards. Every second one of them raises the barrier, too.

        Raises:
            MessagesGoneError, BarrierError: see there; the barrier is known now.
            SpaceDroppedError: the queue was deleted or cleared.
        """
        moving = self._prepare(moves)
        while True:
            try:
                after = await self._commit(moving)
            except UnscheduledError as error:
                moving.scheduled = error.needed
                self._in_flight[moving] = moving.lowest  # It is about to write its rows: the floor stays below them.
                try:
                    await self._expirations.schedule(self._space, self.number, error.needed.due)
                finally:
                    del self._in_flight[moving]
            except BarrierError:
                self._learn(await self.state())
                raise
            else:
                self._learn_of(moving, after)
                return moving.places

    def commit_now(self, moves: Sequence[Move], waiter: "CommitWaiter") -> bool:
        """Have moves join the open commit group, if all that decides on them is known, and nothing speaks against them.

        Return whether they did; if not, nothing was changed. The waiter learns the outcome.
        """
        if not self._alone or self._state is None:
            return False
        moving = self._prepare(moves)
        self._in_flight[moving] = moving.lowest
        joined = _JoinedCommit(self, moving, waiter)
        after = self._engine.commit_now(self._space, self._partition, moving.commit(), joined)
        if after is UNKNOWN:
            del self._in_flight[moving]
            return False
        joined.after = after
        return True

    def end(self, moving: MoveMessages, after: ShardState | None) -> None:
        """Take in that a commit has ended, given the state after it; None: its outcome is unknown."""
        if after is None:
            self._doubt()
        else:
            self._learn_of(moving, after)
        del self._in_flight[moving]

    def _prepare(self, moves: Sequence[Move]) -> MoveMessages:
        """Return moves as they are committed, and raise the floor."""
        moving = MoveMessages(moves)
        state = self._state
        if state is not None:
            now = self._present()
            behind = now - BARRIER_TICKS
            if behind > state.barrier + BARRIER_TICKS:
                self._raise_floor(state, min(now, moving.lowest))
                moving.barrier, moving.floor = behind, self._floor
            elif moving.lifetime > state.lifetime:  # By the present lifetime, rows below the floor have expired.
                self._raise_floor(state, min(now, moving.lowest))
        return moving

    async def _commit(self, moving: MoveMessages) -> ShardState:
        """Commit. A shard that is alone keeps the floor below the rows until their outcome is known."""
        commit = moving.commit()
        if not self._alone:
            return await self._engine.commit(self._space, self._partition, commit)
        in_flight = self._in_flight
        in_flight[moving] = moving.lowest
        try:
            after = await self._engine.commit(self._space, self._partition, commit)
        except asyncio.CancelledError:
            settling = asyncio.create_task(self._settle(moving, commit.rows))
            self._settling.add(settling)
            settling.add_done_callback(self._settling.discard)
            raise
        except EngineError:
            self._doubt()
            del in_flight[moving]
            raise
        except BaseException:
            del in_flight[moving]
            raise
        del in_flight[moving]
        return after

    def _learn_of(self, moving: MoveMessages, after: ShardState) -> None:
        """Take in the state after a commit, and which rows it left."""
        self._learn(after)
        self._left_until = max(self._left_until, moving.left_until)

    async def _settle(self, moving: MoveMessages, rows: Sequence[str]) -> None:
        """Wait for the outcome of a commit whose caller has gone: a commit that names its rows waits for it."""
        try:
            stored = await self._engine.commit(
                self._space, self._partition, Commit(rows, lambda current, _: Decision({}, current[0]))
            )
            if stored != CLOSED:
                self._learn_of(moving, read_state(stored))
        except EngineError:
            self._doubt()
        finally:
            del self._in_flight[moving]

    def _doubt(self) -> None:
        """Rely on the stored barrier alone: a commit whose outcome is unknown may be seen after a later scan."""
        self._alone = False
        self._on_doubt()
        self._floor = 0 if self._state is None else self._state.floor

    async def follow(self) -> None:
        """Raise the floor over rows that were deleted or moved, so that no later scan has to pass them all at once.

        It is stored now and then for a scan after a restart. A process that is not alone has no floor of its own.
        """
        state = self._state
        if state is None or not self._alone or self._left_until <= state.floor:
            return
        await self.claimable(1, 1)
        if self._floor > min(self._left_until, state.floor + STORED_TICKS):
            await self.commit([])

    async def count(self) -> int:
        """Return how many messages the shard has, but for expired ones that a sweep of this process has counted."""
        return max(0, (await self.state()).messages - self._unswept.messages)

    async def sweep(self, since: int, removed_max: int) -> tuple[int, bool | None]:
        """Remove messages that have expired, and schedule the shard for the next ones. See `ShardSweep.run`."""
        sweep = ShardSweep(self._engine, self._space, self.number, self._expirations)
        removed, done = await sweep.run(self.present, since, removed_max, self._unswept)
        if done:
            self.forget_sweep()
        return removed, done

    def forget_sweep(self) -> None:
        """Forget what a sweep has counted."""
        self._unswept = SweepBacklog()


class CommitWaiter(Protocol):
    """Waits for the outcome of a commit. Neither method may raise."""

    def set_result(self, places: Sequence[MessagePosition | None], /) -> None:
        """Note that it is durable, and where each message is afterwards."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Note that it may not be."""
        ...


class _JoinedCommit:
    """A commit that has joined a commit group. Implements `Waiter`."""

    __slots__ = ("_moving", "_shard", "_waiter", "after")

    def __init__(self, shard: Shard, moving: MoveMessages, waiter: CommitWaiter) -> None:
        self._shard = shard
        self._moving = moving
        self._waiter = waiter
        self.after: ShardState | None = None

    def done(self) -> bool:
        """See `Waiter`."""
        return False

    def set_result(self, _: None) -> None:
        """See `Waiter`."""
        self._shard.end(self._moving, self.after)
        self._waiter.set_result(self._moving.places)

    def set_exception(self, exception: BaseException) -> None:
        """See `Waiter`."""
        self._shard.end(self._moving, None)
        self._waiter.set_exception(exception)


async def close_shard(engine: Engine, space: int, number: int) -> None:
    """Reject all later commits of a shard, in every process, with `SpaceDroppedError`."""
    await engine.commit(space, partition_of(number), put_rows({STATE_ROW: CLOSED}))
