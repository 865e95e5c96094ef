"""The messages of all queues: put, get, peek, update, delete, count, and the removal of expired ones.

A process reads claimable messages of a queue ahead. It notes where the messages are that it has handed out, so that
their deletion needs no read before its commit; the oldest notes are forgotten. Both are hints, as the commit decides.
The time of a process never steps back.

Invariants of reading ahead: a message is handed to one consumer of this process at a time. An empty result means that,
at some moment after the call began, there was no claimable message that no other consumer had been handed. The messages
of the home shards come in the order of their visibility.

Of several processes, each reads its *home shards*, so that they do not compete for rows. It reads other shards if it
finds no message at home, or if the messages there are older than those at home.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from random import Random
from typing import NamedTuple
from weakref import WeakValueDictionary

from lazulite.engine.contract import Clock, Engine, SpaceDroppedError
from lazulite.engine.remote.procedures import PLAIN, Form, Interface, Method, optional, several
from lazulite.protocol.clock import LAST_TICK, TICKS_PER_SECOND
from lazulite.queue.catalog import Queue
from lazulite.queue.limits import READ_AHEAD_BYTES_MAX
from lazulite.queue.model.expirations import DueShard, Expirations
from lazulite.queue.model.message import Message, MessageId, MessagePosition, Receipt, id_of
from lazulite.queue.model.moves import BarrierError, MessagesGoneError, Move
from lazulite.queue.model.shard import TOGETHER_MAX, Head, Shard

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

HELD_MAX = 8192

QUEUES_MAX = 512
"""So many queues are known at a time, as far as they are idle. Each may have read ahead 256 KiB."""
SWEPT_MAX = 4096
"""Expired messages of a shard that are removed before those of others."""
_VERSION_BITS, _VERSION_4 = 0xF << 76 | 3 << 62, 4 << 76 | 2 << 62
"""The bits of a UUID that tell its kind, and their values in a random one (RFC 9562, section 5.4)."""
_PEEK_BYTES_MAX = 1 << 22
"""More bytes than the texts of a peek have."""


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
        taken = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        self._handed.update([message.id for message in taken])
        self._budget.update(self, -sum(map(_bytes_of, taken)))
        return taken

    def drop(self) -> None:
        """Forget what has been read ahead. It is read again when a consumer wants it."""
        self._ready.clear()

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


class ClaimedPositions:
    """The places of messages by receipt."""

    def __init__(self) -> None:
        self._places: dict[tuple[MessageId, int, int], tuple[int, MessagePosition]] = {}
        """By id and receipt: the time of expiration, and the place."""

    def hold(self, message: Message, place: MessagePosition) -> None:
        """Cache the place of a message."""
        places = self._places
        places[message.id, message.visible, message.changes] = message.expires, place
        if len(places) > HELD_MAX:
            del places[next(iter(places))]

    def take(self, message: MessageId, receipt: Receipt, now: int) -> MessagePosition | None:
        """Return the place of a message that has not expired, and forget it; None if it is not known."""
        expires, place = self._places.pop((message, *receipt), (0, None))
        return place if expires > now else None


class NonDecreasingClock:
    """A clock that stands still while another one steps back.

    Args:
        clock: the other one.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest = 0

    def __call__(self) -> int:
        """Return the time in ticks."""
        now = self._clock()
        if now < self._latest:
            return self._latest
        self._latest = now
        return now


class _CachedQueue(NamedTuple):
    """A queue as this process knows it."""

    shards: Sequence[Shard]
    ahead: LookAhead

    @property
    def is_idle(self) -> bool:
        """Whether no operation relies on it."""
        return self.ahead.is_idle and all(shard.is_idle for shard in self.shards)


class Messages:
    """The messages of all queues.

    Every method may raise `SpaceDroppedError`: the queue was deleted or cleared meanwhile.

    Args:
        engine: holds the rows.
        clock: the time now.
        random: the source of message ids.
        alone: whether no other object and no other process changes messages of the engine.
        homes: the home shards of this process.
    """

    def __init__(
        self, engine: Engine, clock: Clock, random: Random, *, alone: bool = False, homes: Homes = everywhere
    ) -> None:
        self._engine = engine
        self._alone = alone
        self._homes = homes
        self._present = NonDecreasingClock(clock)
        self._random = random
        self._queues: dict[int, _CachedQueue] = {}
        self._read_ahead = ReadAheadBudget()
        self._shards: WeakValueDictionary[tuple[int, int], Shard] = WeakValueDictionary()
        """By space and number. A shard with a commit in flight stays the same, even if its queue was forgotten."""
        self._held = ClaimedPositions()
        self._expirations = Expirations(engine, random)

    async def put(self, queue: Queue, text: bytes, delay_seconds: int, ttl_seconds: int | None) -> Message:
        """Add a message.

        Args:
            queue: the queue.
            text: UTF-8.
            delay_seconds: the message is invisible so long.
            ttl_seconds: it expires after so long; None: never.
        """
        homes = self._homes(queue.shards)
        message = _new_id(self._random, queue.shards, homes)
        shard = self._shard(queue, message)
        await shard.know()
        while True:
            now = shard.present()
            expires = LAST_TICK if ttl_seconds is None else min(LAST_TICK, now + ttl_seconds * TICKS_PER_SECOND)
            added = Message(message, now, expires, now + delay_seconds * TICKS_PER_SECOND, text)
            try:
                await shard.commit([Move(None, added)])
            except BarrierError:
                continue
            return added

    async def get(self, queue: Queue, count: int, timeout_seconds: int) -> list[Message]:
        """Claim up to so many messages, and make them invisible for so long.

        It passes over its own, which become visible again if it is slow: a get delivers a message once. If the queue is
        deleted or cleared meanwhile, it returns what it has claimed before: its receipts are the latest ones.
        """
        ahead = self._known(queue).ahead
        claimed: dict[MessageId, Message] = {}
        own: list[Message] = []
        try:
            while len(claimed) < count and (taken := await ahead.take(count - len(claimed))):
                if claimed:
                    own += [message for message in taken if message.id in claimed]
                    taken = [message for message in taken if message.id not in claimed]
                try:
                    for message in await self._claim(queue, taken, timeout_seconds):
                        claimed[message.id] = message
                finally:
                    ahead.release(taken)
        except SpaceDroppedError:
            if not claimed:
                raise
        finally:
            if own:
                ahead.release(own)
        return list(claimed.values())

    async def _claim(self, queue: Queue, taken: Sequence[Message], timeout_seconds: int) -> list[Message]:
        """Claim those of some messages that are still there, a commit for each shard.

        Raises:
            SpaceDroppedError: all shards are closed. While a queue is being cleared, some are.
        """
        if len(taken) == 1 or queue.shards == 1:
            return await self._claim_in(self._shard(queue, taken[0].id), taken, timeout_seconds) if taken else []
        shards: dict[Shard, list[Message]] = {}
        for message in taken:
            shards.setdefault(self._shard(queue, message.id), []).append(message)
        claims = (self._claim_in(shard, messages, timeout_seconds) for shard, messages in shards.items())
        outcomes = await asyncio.gather(*claims, return_exceptions=True)
        errors = [each for each in outcomes if isinstance(each, BaseException)]
        errors.sort(key=lambda error: isinstance(error, SpaceDroppedError))
        if errors and (len(errors) == len(outcomes) or not isinstance(errors[0], SpaceDroppedError)):
            raise errors[0]
        claimed = {message.id: message for each in outcomes if isinstance(each, list) for message in each}
        return [claimed[message.id] for message in taken if message.id in claimed]

    async def _claim_in(self, shard: Shard, messages: Sequence[Message], timeout_seconds: int) -> list[Message]:
        left = messages
        while True:
            now = shard.present()
            visible = now + timeout_seconds * TICKS_PER_SECOND
            left = [message for message in left if message.expires > now]
            if not left:
                return []
            claimed = [message.claimed(visible) for message in left]
            moves = [Move(message.place, after) for message, after in zip(left, claimed, strict=True)]
            try:
                places = await shard.commit(moves)
            except MessagesGoneError as error:
                left = [message for index, message in enumerate(left) if index not in error.indices]
            except BarrierError:
                continue
            else:
                for message, place in zip(claimed, places, strict=True):
                    if place is not None:
                        self._held.hold(message, place)
                return claimed

    async def peek(self, queue: Queue, count: int) -> list[Message]:
        """Return up to so many visible messages in the order of their visibility, and change nothing."""
        shards = self._known(queue).shards
        heads = await asyncio.gather(*(shard.claimable(count, _PEEK_BYTES_MAX, least=count) for shard in shards))
        return sorted((message for head in heads for message in head.messages), key=lambda each: each.order)[:count]

    async def update(
        self, queue: Queue, message: MessageId, receipt: Receipt, timeout_seconds: int, text: bytes | None
    ) -> Message | None:
        """Make a message invisible for so long from now, which may be beyond its expiry, with another text if given.

        Returns:
            The message; None if it is gone, or if the receipt is not its latest.
        """
        shard = self._shard(queue, message)
        found = await self._find(shard, message, receipt)
        if found is None:
            return None

        while True:
            updated = found.moved(shard.present() + timeout_seconds * TICKS_PER_SECOND, text)
            try:
                await shard.commit([Move(found.place, updated)])
            except MessagesGoneError:
                return None
            except BarrierError:
                continue
            return updated

    async def delete(self, queue: Queue, message: MessageId, receipt: Receipt) -> bool:
        """Delete a message; return False if it is gone, or if the receipt is not its latest."""
        shard = self._shard(queue, message)
        place = self._held.take(message, receipt, shard.present())
        if place is None:
            found = await self._find(shard, message, receipt)
            if found is None:
                return False
            place = found.place
        try:
            await shard.commit([Move(place, None)])
        except MessagesGoneError:
            return False
        return True

    async def _find(self, shard: Shard, message: MessageId, receipt: Receipt) -> Message | None:
        found = await shard.find(message, receipt.visible)
        return found if found is not None and found.changes == receipt.changes else None

    async def count(self, queue: Queue) -> int:
        """Return how many messages a queue has, invisible ones included, and expired ones that no sweep has counted."""
        return sum(await asyncio.gather(*(shard.count() for shard in self._known(queue).shards)))

    async def remove_expired(self) -> int:
        """Remove expired messages of all queues; return how many there were.

        Each shard in turn is swept, up to a bound, until none has more. The first bound is low: it counts all backlogs.
        It is harmless that several processes do it. Before that, the floors of known shards follow what was deleted.
        """
        await self._follow()
        total, more, swept, most = 0, True, set[Shard](), TOGETHER_MAX
        try:
            while more:
                more = False
                async with aclosing(self._expirations.due(self._present())) as found:
                    async for due in found:
                        removed, done = await self._sweep(due, swept, most)
                        total += removed
                        more = more or not done
                most = SWEPT_MAX
        finally:
            for shard in swept:  # Another process may sweep it next.
                shard.forget_sweep()
        return total

    async def _follow(self) -> None:
        for known in list(self._queues.values()):
            for shard in known.shards:
                with suppress(SpaceDroppedError):
                    await shard.follow()

    async def _sweep(self, due: DueShard, swept: set[Shard], most: int) -> tuple[int, bool]:
        known = self._queues.get(due.space)
        shard = self._new_shard(due.space, due.shard) if known is None else known.shards[due.shard]
        swept.add(shard)
        try:
            removed, done = await shard.sweep(due.time, most)
        except SpaceDroppedError:
            removed, done = 0, True
        if done is None:
            return removed, True  # Until the lease ends.
        await (self._expirations.finish(due) if done else self._expirations.postpone(due))
        return removed, done

    def _known(self, queue: Queue) -> _CachedQueue:
        known = self._queues.get(queue.space)
        if known is None:
            if len(self._queues) >= QUEUES_MAX:
                for space, each in list(self._queues.items()):
                    if each.is_idle:
                        self._read_ahead.drop(each.ahead)
                        del self._queues[space]
            shards = [self._new_shard(queue.space, number) for number in range(queue.shards)]
            known = self._queues[queue.space] = _CachedQueue(
                shards, LookAhead(shards, self._homes, budget=self._read_ahead)
            )
        return known

    def _new_shard(self, space: int, number: int) -> Shard:
        shard = self._shards.get((space, number))
        if shard is None:
            shard = self._shards[space, number] = Shard(
                self._engine,
                space,
                number,
                self._present,
                self._expirations,
                alone=self._alone,
                on_doubt=self._doubt,
            )
        return shard

    def _doubt(self) -> None:
        self._alone = False

    def _shard(self, queue: Queue, message: MessageId) -> Shard:
        shards = self._known(queue).shards
        return shards[int(message, 16) % queue.shards if queue.shards > 1 else 0]


def _new_id(random: Random, shards: int, homes: Sequence[int]) -> MessageId:
    """Return a message id of one of the home shards."""
    number = random.getrandbits(128) & ~_VERSION_BITS | _VERSION_4
    return id_of(number - number % shards + homes[number // shards % len(homes)])


_QUEUE = Form(lambda queue: (queue.name, queue.space, queue.shards), lambda sent: Queue(*sent))
"""What `Messages` needs of a queue."""
_RECEIPT = Form(tuple, lambda sent: Receipt(*sent))
_MESSAGE = Form(tuple, lambda sent: Message(*sent))
MESSAGES: Interface[Messages] = Interface(
    "queue",
    {
        "put": Method((_QUEUE, PLAIN, PLAIN, PLAIN), _MESSAGE),
        "get": Method((_QUEUE, PLAIN, PLAIN), several(_MESSAGE)),
        "peek": Method((_QUEUE, PLAIN), several(_MESSAGE)),
        "update": Method((_QUEUE, PLAIN, _RECEIPT, PLAIN, PLAIN), optional(_MESSAGE)),
        "delete": Method((_QUEUE, PLAIN, _RECEIPT)),
        "count": Method((_QUEUE,)),
    },
)
"""All workers of a primary share its messages: its clock, what it knows of each shard, and above all its look-ahead, so
that it hands each message to one consumer, whichever worker the consumer asked."""
