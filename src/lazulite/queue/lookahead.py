"""Reading ahead in the shards of a queue, so that one read serves many gets.

Invariants of reading ahead: a message is handed to one consumer of this process at a time. An empty result means that,
at some moment after the call began, there was no claimable message that no other consumer had been handed. The messages
of the home shards come in the order of their visibility.

Of several processes, each reads its *home shards*, so that they do not compete for rows. It reads other shards if it
finds no message at home, or if the messages there are older than those at home.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from lazulite.protocol.clock import LAST_TICK, TICKS_PER_SECOND
from lazulite.queue.limits import READ_AHEAD_BYTES_MAX
from lazulite.queue.model.message import Message, MessageId
from lazulite.queue.model.shard import Head, Shard

ROWS_MAX = 256
"""Rows that are read ahead, of all shards together."""
BYTES_MAX = 256 * 1024
"""Bytes of texts after which reading ahead ends."""
_MESSAGE_BYTES = 512
"""The memory of a message beside its text, about."""
OVERDUE_TICKS = TICKS_PER_SECOND
"""A message of another shard is claimed before one at home that became visible so much later; and how often it is
looked for such messages."""

OVERDUE_ROWS_MAX = 64
"""Messages of another shard that are read at once."""

Homes = Callable[[int], Sequence[int]]
"""Takes the number of a queue's shards to the numbers of the home shards."""


def everywhere(shards: int) -> Sequence[int]:
    """Return all shards: the home shards of a process that has no company."""
    return range(shards)


def _bytes_of(message: Message) -> int:
    return len(message.text) + _MESSAGE_BYTES


class ReadAheadBudget:
    """The memory of the messages that all queues of a process have read ahead.

    When it is full, the queue that was read the longest time ago is dropped, never the newest.

    Args:
        bytes_max: the bound of the total.
    """

    def __init__(self, bytes_max: int = READ_AHEAD_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._held: dict[LookAhead, int] = {}
        """In the order of the last reads."""
        self.held_bytes = 0

    def update(self, holder: "LookAhead", change: int) -> None:
        """Account for bytes that a queue has read ahead, or handed out if `change` is negative."""
        if not change:
            return
        held = self._held
        count = held.pop(holder, 0) + change if change > 0 else held.get(holder, 0) + change
        self.held_bytes += change
        if count:
            held[holder] = count
        else:
            held.pop(holder, None)
        while self.held_bytes > self._bytes_max and len(held) > 1:
            self.drop(next(iter(held)))

    def drop(self, holder: "LookAhead") -> None:
        """Drop what a queue has read ahead, if anything."""
        self.held_bytes -= self._held.pop(holder, 0)
        holder.drop()


class LookAhead:
    """Reads ahead in the shards of a queue.

    Args:
        shards: of the queue.
        homes: the home shards.
        budget: bounds what all queues have read ahead; None for a budget of its own.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        homes: Homes = everywhere,
        budget: "ReadAheadBudget | None" = None,
    ) -> None:
        self._budget = budget or ReadAheadBudget()
        self._shards = shards
        self._homes = homes
        self._rows_max = ROWS_MAX
        """Rows of the next read: fewer, if the messages of the last one were large."""
        self._look_at = 0
        """When to look next for older messages of other shards, in ticks."""
        self._stale_at = LAST_TICK
        """When to read again although there are messages: other processes have home shards, too."""
        self._ready: deque[Message] = deque()
        self._handed: set[MessageId] = set()
        self._reading: asyncio.Task[bool] | None = None
        self._begun = 0
        """How many reads have begun."""

    @property
    def is_idle(self) -> bool:
        """Whether no consumer has been handed a message that it has not released."""
        return not self._handed and self._reading is None

    async def take(self, count: int) -> list[Message]:
        """Return up to so many messages in the order of their visibility. Hand them to `release` in the end."""
        if self._stale_at < LAST_TICK and self._shards[0].present() >= self._stale_at:
            self._budget.drop(self)  # Other shards may have older ones meanwhile.
        if not self._ready:
            await self._read_ahead()
        return self._take(count)

    def take_now(self, count: int) -> list[Message]:
        """Do as `take` in this step. Return none unless so many have been read ahead, and can be no younger ones."""
        return [] if self._stale_at < LAST_TICK or len(self._ready) < count else self._take(count)

    def _take(self, count: int) -> list[Message]:
        taken = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        self._handed.update([message.id for message in taken])
        self._budget.update(self, -sum(map(_bytes_of, taken)))
        return taken

    def drop(self) -> None:
        """Forget what has been read ahead. It is read again when a consumer wants it."""
        self._ready.clear()

    def put_back(self, taken: Sequence[Message]) -> None:
        """End the claims of messages that are to be handed out next."""
        self.release(taken)
        self._ready.extendleft(reversed(taken))
        self._budget.update(self, sum(map(_bytes_of, taken)))

    def release(self, taken: Sequence[Message]) -> None:
        """End the claims of messages, whatever became of them."""
        self._handed.difference_update([message.id for message in taken])

    async def _read_ahead(self) -> None:
        """Read until there are messages, or until a read that began after this call finds none."""
        begun_before = self._begun
        while not self._ready:
            reading = self._reading
            if reading is None or reading.done():  # Its callback may be waiting behind this consumer.
                self._begun += 1
                reading = self._reading = asyncio.create_task(self._read())
                reading.add_done_callback(self._end_reading)
            is_new = self._begun > begun_before
            found = await asyncio.shield(reading)
            if is_new and not found:
                return

    def _end_reading(self, task: asyncio.Task[bool]) -> None:
        if self._reading is task:
            self._reading = None
        if not task.cancelled():
            task.exception()  # Retrieved, should all consumers have gone.

    async def _read(self) -> bool:
        """Read the home shards, and others if need be; return whether there was any message."""
        numbers = range(len(self._shards))
        homes = self._homes(len(numbers))
        others = [number for number in numbers if number not in homes]
        found = await self._first(homes)
        self._stale_at = self._shards[0].present() + OVERDUE_TICKS if others else LAST_TICK
        if others:
            found = (await self._overdue(found[0].visible, others) or found) if found else await self._first(others)
        if not found:
            if others or len(homes) > 1:
                await self._shards[homes[0]].state()  # Raises if another process has deleted or cleared the queue.
            return False
        self._ready.extend(found)
        size = sum(map(_bytes_of, found))
        self._rows_max = min(ROWS_MAX, 2 * BYTES_MAX * len(found) // size)
        self._budget.update(self, size)
        return True

    async def _first(self, numbers: Sequence[int]) -> list[Message]:
        """Return the first messages of some shards together, in the order of their visibility.

        Whatever is not read of one of the shards comes behind them.
        """
        heads = await self._heads(numbers, max(1, self._rows_max // len(numbers)))
        until = min(head.until for head in heads)
        found = [message for head in heads for message in head.messages if message.visible <= until]
        found.sort(key=lambda message: message.order)
        return found

    async def _overdue(self, visible: int, others: Sequence[int]) -> list[Message]:
        """Return messages of the other shard with the oldest ones, if they are much older than a time of visibility.

        Of one shard only: another process may be about to claim the same ones.
        """
        now = self._shards[0].present()
        if now < self._look_at:
            return []
        heads = await self._heads(others, 1)
        ages = [(head.messages[0].visible, number) for number, head in zip(others, heads, strict=True) if head.messages]
        (oldest, number), (next_oldest, _), *_ = [*sorted(ages), (visible, 0), (visible, 0)]
        if oldest + OVERDUE_TICKS >= visible:
            self._look_at = now + OVERDUE_TICKS
            return []
        [head] = await self._heads([number], OVERDUE_ROWS_MAX)
        until = min(next_oldest + OVERDUE_TICKS, visible)
        return [message for message in head.messages if message.visible < until]

    async def _heads(self, numbers: Sequence[int], rows_max: int) -> list[Head]:
        """Read some shards at once."""
        bytes_max = BYTES_MAX // len(numbers)
        reads = [self._shards[number].claimable(rows_max, bytes_max, self._handed) for number in numbers]
        return await asyncio.gather(*reads) if len(reads) > 1 else [await reads[0]]
