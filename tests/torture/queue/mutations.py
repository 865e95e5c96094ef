"""Servers that break one promise of queues each, which the campaigns of queues must find."""

import asyncio
from collections.abc import Callable, Sequence

from lazulite.engine.commit import Decision, Values
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.queue.catalog import Catalog, Queue
from lazulite.queue.messages import ClaimedPositions, Messages
from lazulite.queue.model import message, shard
from lazulite.queue.model.message import Message, MessagePosition, Receipt
from lazulite.queue.model.moves import STATE_ROW, MoveMessages, ShardState, read_state
from lazulite.queue.model.shard import Head, Shard
from tests.torture.mutations import replace_attributes

_decide = MoveMessages.decide


def visible_early() -> None:
    """A get makes messages invisible for half of the time."""
    get = Messages.get

    async def shorter(self: Messages, queue: Queue, count: int, timeout_seconds: int) -> list[Message]:
        return await get(self, queue, count, timeout_seconds // 2)

    replace_attributes(Messages, get=shorter)


def count_no_dequeue() -> None:
    """A get does not raise the dequeue count."""
    replace_attributes(Message, claimed=lambda self, visible: self.moved(visible))


def move_whatever_is_there() -> None:
    """A commit moves a message from wherever the caller believes it to be."""

    def decide(self: MoveMessages, current: Values, timestamp: int) -> Decision[ShardState]:
        believed = list(current)
        for before in self._previous:
            if before is not None:
                believed[before[0]] = before[1]
        return _decide(self, believed, timestamp)

    replace_attributes(MoveMessages, decide=decide)


def hand_out_twice() -> None:
    """Believe that a message is where it was, and hand it to a second consumer."""
    move_whatever_is_there()
    claim = Messages._claim_in
    again: set[object] = set()

    async def twice(self: Messages, shard: Shard, messages: Sequence[Message], timeout_seconds: int) -> list[Message]:
        claimed = await claim(self, shard, messages, timeout_seconds)
        known = next(each for each in self._queues.values() if shard in each.shards)
        known.ahead._ready.extend(message for message in messages if message.id not in again)
        again.update(message.id for message in messages)
        return claimed

    replace_attributes(Messages, _claim_in=twice)


def any_receipt() -> None:
    """Every receipt of a message deletes it, wherever it is."""
    latest: dict[object, MessagePosition] = {}
    hold, take = ClaimedPositions.hold, ClaimedPositions.take

    def note(self: ClaimedPositions, message: Message, place: MessagePosition) -> None:
        hold(self, message, place)
        latest[message.id] = place

    def any_place(self: ClaimedPositions, message: object, receipt: Receipt, now: int) -> MessagePosition | None:
        return latest.get(message) or take(self, message, receipt, now)  # type: ignore[arg-type]  # its id

    replace_attributes(ClaimedPositions, hold=note, take=any_place)


def floor_above() -> None:
    """A scan raises the floor above the messages that it found."""
    claimable = Shard.claimable

    async def above(self: Shard, rows_max: int, bytes_max: int, skip: object = ()) -> Head:
        head = await claimable(self, rows_max, bytes_max, skip)  # type: ignore[arg-type]  # as there
        if head.messages:
            self._floor = head.messages[-1].visible + 1
        return head

    replace_attributes(Shard, claimable=above)


def barrier_forgotten() -> None:
    """The barrier is not stored, and the floor is; so rows are written below the floor when the clock has gone back."""

    def decide(self: MoveMessages, current: Values, timestamp: int) -> Decision[ShardState]:
        state = read_state(current[0])
        self.lowest = max(self.lowest, state.barrier)
        return _decide(self, current, timestamp)

    replace_attributes(MoveMessages, decide=decide)
    replace_attributes(Shard, present=lambda self: self._present())


def count_no_deletion() -> None:
    """The number of messages never falls."""

    def decide(self: MoveMessages, current: Values, timestamp: int) -> Decision[ShardState]:
        changes, after, _ = _decide(self, current, timestamp)
        if STATE_ROW not in changes:
            return Decision(changes, after)
        state = after._replace(messages=max(after.messages, read_state(current[0]).messages))
        return Decision({**changes, STATE_ROW: state.value}, after)

    replace_attributes(MoveMessages, decide=decide)


def clear_nothing() -> None:
    """Clear does not change the queue."""

    async def clear(self: Catalog, account: str, name: str) -> None:
        await self.require(account, name)

    replace_attributes(Catalog, clear=clear)


def expire_late() -> None:
    """A message lives two hours longer."""
    put = Messages.put

    async def longer(self: Messages, queue: Queue, text: bytes, delay_seconds: int, ttl_seconds: int | None) -> Message:
        return await put(self, queue, text, delay_seconds, None if ttl_seconds is None else ttl_seconds + 7200)

    replace_attributes(Messages, put=longer)


def expire_early() -> None:
    """Messages expire by a clock that is a minute ahead."""
    expires_at = message.expires_at
    vars(shard)["expires_at"] = lambda value: expires_at(value) - 60 * TICKS_PER_SECOND


def delete_later() -> None:
    """A deletion is answered before it is committed."""
    delete = Messages.delete
    tasks = set()

    async def later(self: Messages, queue: Queue, message: object, receipt: Receipt) -> bool:
        async def wait() -> bool:
            await asyncio.sleep(0.3)
            return await delete(self, queue, message, receipt)  # type: ignore[arg-type]  # its id

        task = asyncio.create_task(wait())
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return True

    replace_attributes(Messages, delete=later)


def forget_text() -> None:
    """An update with a text keeps the old one."""
    moved = Message.moved
    replace_attributes(
        Message, moved=lambda self, visible, text=None, *, dequeued=0: moved(self, visible, dequeued=dequeued)
    )


def delete_gone() -> None:
    """A deletion of a message that is not there succeeds."""
    delete = Messages.delete

    async def succeed(self: Messages, queue: Queue, message: object, receipt: Receipt) -> bool:
        await delete(self, queue, message, receipt)  # type: ignore[arg-type]  # its id
        return True

    replace_attributes(Messages, delete=succeed)


MUTATIONS: dict[str, Callable[[], None]] = {
    f"queue-{each.__name__.replace('_', '-')}": each
    for each in (
        *(visible_early, count_no_dequeue, move_whatever_is_there, hand_out_twice, any_receipt, floor_above),
        *(barrier_forgotten, count_no_deletion, clear_nothing, expire_late, expire_early, delete_later, forget_text),
        delete_gone,
    )
}
