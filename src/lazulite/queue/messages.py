"""The messages of all queues: put, get, peek, update, delete, count, and the removal of expired ones.

A process reads claimable messages of a queue ahead. It notes where the messages are that it has handed out, so that
their deletion needs no read before its commit; the oldest notes are forgotten. Both are hints, as the commit decides.
The time of a process never steps back.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from random import Random
from typing import NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from lazulite.engine.contract import Clock, Engine, SpaceDroppedError
from lazulite.engine.remote.procedures import PLAIN, Form, Interface, Method, optional, several
from lazulite.protocol.clock import LAST_TICK, TICKS_PER_SECOND
from lazulite.queue.catalog import Queue
from lazulite.queue.lookahead import Homes, LookAhead, ReadAheadBudget, everywhere
from lazulite.queue.model.expirations import DueShard, Expirations
from lazulite.queue.model.message import Message, MessageId, MessagePosition, Receipt, id_of
from lazulite.queue.model.moves import BarrierError, MessagesGoneError, Move
from lazulite.queue.model.shard import TOGETHER_MAX, CommitWaiter, Shard

HELD_MAX = 8192

QUEUES_MAX = 512
"""So many queues are known at a time, as far as they are idle. Each may have read ahead 256 KiB."""
SWEPT_MAX = 4096
"""Expired messages of a shard that are removed before those of others."""
_VERSION_BITS, _VERSION_4 = 0xF << 76 | 3 << 62, 4 << 76 | 2 << 62
"""The bits of a UUID that tell its kind, and their values in a random one (RFC 9562, section 5.4)."""
_TEXT_AT = Message._fields.index("text")
_PEEK_BYTES_MAX = 1 << 22
"""More bytes than the texts of a peek have."""


Put: TypeAlias = tuple[bytes, int, int | None]
"""A message to be added, see `Messages.put`: its text, delay and time to live."""


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


class _JoinedClaim:
    """A claim of messages that has joined a commit group. Implements `CommitWaiter`."""

    __slots__ = ("_ahead", "_claimed", "_positions", "_waiter")

    def __init__(
        self, positions: ClaimedPositions, ahead: LookAhead, claimed: Sequence[Message], waiter: CommitWaiter
    ) -> None:
        self._positions = positions
        self._ahead = ahead
        self._claimed = claimed
        self._waiter = waiter

    def set_result(self, places: Sequence[MessagePosition | None]) -> None:
        """See `CommitWaiter`."""
        for message, place in zip(self._claimed, places, strict=True):
            if place is not None:
                self._positions.hold(message, place)
        self._ahead.release(self._claimed)
        self._waiter.set_result(places)

    def set_exception(self, exception: BaseException) -> None:
        """See `CommitWaiter`."""
        self._ahead.release(self._claimed)
        self._waiter.set_exception(exception)


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
        """Add a message. Return it; in a worker, without its text.

        Args:
            queue: the queue.
            text: UTF-8.
            delay_seconds: the message is invisible so long.
            ttl_seconds: it expires after so long; None: never.
        """
        [message] = await self.put_all(queue, [(text, delay_seconds, ttl_seconds)])
        return message

    async def put_all(self, queue: Queue, puts: Sequence[Put]) -> list[Message]:
        """Add messages to one shard, all of them or none: the arguments of `put` but for the queue."""
        ids = [_new_id(self._random, queue.shards, self._homes(queue.shards))]
        shard = self._shard(queue, ids[0])
        ids += [_new_id(self._random, queue.shards, [shard.number]) for _ in puts[1:]]
        await shard.know()
        while True:
            now = shard.present()
            added = [_new_message(message, now, *put) for message, put in zip(ids, puts, strict=True)]
            try:
                await shard.commit([Move(None, message) for message in added])
            except BarrierError:
                continue
            return added

    def put_now(
        self, queue: Queue, text: bytes, delay_seconds: int, ttl_seconds: int | None, waiter: CommitWaiter
    ) -> Message | None:
        """Do as `put` in this step: return the message, which may be told of once `waiter` has its result.

        Return None where `put` would wait first, or fails; then nothing was changed.
        """
        message = _new_id(self._random, queue.shards, self._homes(queue.shards))
        shard = self._shard(queue, message)
        added = _new_message(message, shard.present(), text, delay_seconds, ttl_seconds)
        return added if shard.commit_now([Move(None, added)], waiter) else None

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

    def get_now(self, queue: Queue, count: int, timeout_seconds: int, waiter: CommitWaiter) -> Sequence[Message] | None:
        """Do as `get` in this step, of as many messages as are asked for.

        Return them, which may be told of once `waiter` has its result; None where `get` would wait first, or might
        return fewer. Then nothing was changed.
        """
        shards, ahead = self._known(queue)
        taken = ahead.take_now(count) if len(shards) == 1 else []
        if not taken:
            return None
        [shard] = shards
        now = shard.present()
        claimed = [message.claimed(now + timeout_seconds * TICKS_PER_SECOND) for message in taken]
        moves = [Move(message.place, after) for message, after in zip(taken, claimed, strict=True)]
        waiting = _JoinedClaim(self._held, ahead, claimed, waiter)
        if all(message.expires > now for message in taken) and shard.commit_now(moves, waiting):
            return claimed
        ahead.put_back(taken)
        return None

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
        heads = await asyncio.gather(*(shard.peek(count, _PEEK_BYTES_MAX) for shard in shards))
        return sorted((message for head in heads for message in head), key=lambda each: each.order)[:count]

    def peek_now(self, queue: Queue, count: int) -> list[Message] | None:
        """Do as `peek` in this step, of the messages that the last one has found; None where it would look for them."""
        shards = self._known(queue).shards
        return shards[0].peek_now(count) if len(shards) == 1 else None

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

    def delete_now(self, queue: Queue, message: MessageId, receipt: Receipt, waiter: CommitWaiter) -> bool:
        """Do as `delete` in this step: True means that `waiter` gets the outcome, False that nothing was changed."""
        shard = self._shard(queue, message)
        place = self._held.take(message, receipt, shard.present())
        return place is not None and shard.commit_now([Move(place, None)], waiter)

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
    if shards > 1:
        number += homes[number // shards % len(homes)] - number % shards
    return id_of(number)


def _new_message(message: MessageId, now: int, text: bytes, delay_seconds: int, ttl_seconds: int | None) -> Message:
    """Return a message that is put now. See `Messages.put`."""
    expires = LAST_TICK if ttl_seconds is None else min(LAST_TICK, now + ttl_seconds * TICKS_PER_SECOND)
    return Message(message, now, expires, now + delay_seconds * TICKS_PER_SECOND, text)


_QUEUE = Form(lambda queue: (queue.name, queue.space, queue.shards), lambda sent: Queue(*sent))
"""What `Messages` needs of a queue."""
_PUT = Form(tuple, tuple)
_RECEIPT = Form(tuple, lambda sent: Receipt(*sent))
_MESSAGE = Form(tuple, lambda sent: Message(*sent))
_ADDED = Form(lambda message: message[:_TEXT_AT], lambda sent: Message(sent[0], sent[1], sent[2], sent[3], b""))
"""A message that was put, without its text: the process that has put it has the text."""
MESSAGES: Interface[Messages] = Interface(
    "queue",
    {
        "put": Method((_QUEUE, PLAIN, PLAIN, PLAIN), _ADDED, together="put_all"),
        "put_all": Method((_QUEUE, several(_PUT)), several(_ADDED)),
        "get": Method((_QUEUE, PLAIN, PLAIN), several(_MESSAGE)),
        "peek": Method((_QUEUE, PLAIN), several(_MESSAGE)),
        "update": Method((_QUEUE, PLAIN, _RECEIPT, PLAIN, PLAIN), optional(_MESSAGE)),
        "delete": Method((_QUEUE, PLAIN, _RECEIPT)),
        "count": Method((_QUEUE,)),
    },
)
"""All workers of a primary share its messages: its clock, what it knows of each shard, and above all its look-ahead, so
that it hands each message to one consumer, whichever worker the consumer asked."""
