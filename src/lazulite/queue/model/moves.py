"""The commit of one shard: messages that are added, get another time of visibility, or are deleted.

Invariants:
- a commit applies all its moves or none;
- a message moves only from the value that the caller has read. Of two commits that move one message, one is rejected;
- no row is added below the shard's barrier;
- the shard's count is that of its messages;
- no message is due before the time that the shard is scheduled for (`expirations`);
- no message lasts longer than the shard's lifetime once it is visible.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from lazulite.engine.commit import ANYTHING, Commit, Decision, Expect, Precondition, Values
from lazulite.engine.contract import SpaceDroppedError
from lazulite.protocol.clock import LAST_TICK
from lazulite.queue.model.expirations import slot_of
from lazulite.queue.model.message import Message, MessagePosition, visible_at

STATE_ROW = "s"
_STATE = struct.Struct(">cQQQQIQ")
_WITHOUT_LIFETIME = struct.Struct(">cQQQQI")
"""The form of a shard that was last written by a version without lifetimes."""
_KIND = b"s"
CLOSED = b"c"
"""The value instead of a state: the queue was deleted or cleared."""


class ShardState(NamedTuple):
    """The row of a shard. Times are in ticks."""

    barrier: int = 0
    """No row appears that is visible before it."""
    floor: int = 0
    """No message that is visible before it can be claimed, now or later; never above the barrier."""
    messages: int = 0
    """How many messages the shard has."""
    due: int = LAST_TICK
    """No message of the shard is due to be removed before it."""
    sweeps: int = 0
    """How often its expired messages were removed."""
    lifetime: int = 0
    """Each message expires so long after its time of visibility, or sooner."""

    @property
    def value(self) -> bytes:
        """The stored form."""
        return _STATE.pack(_KIND, *self)


def read_state(value: bytes | None) -> ShardState:
    """Read the row of a shard; None for a shard that had no message yet.

    Raises:
        SpaceDroppedError: the queue was deleted or cleared.
        ValueError: it is malformed.
    """
    if value is None:
        return ShardState()
    if value == CLOSED:
        raise SpaceDroppedError("the queue was deleted or cleared")
    try:
        if len(value) == _WITHOUT_LIFETIME.size:
            kind, *numbers = *_WITHOUT_LIFETIME.unpack(value), LAST_TICK
        else:
            kind, *numbers = _STATE.unpack(value)
    except struct.error:
        raise ValueError("the state of a shard has another length") from None
    state = ShardState(*numbers)
    if kind != _KIND or state.floor > state.barrier:
        raise ValueError("the value is not a shard")
    return state


class MessagesGoneError(Exception):
    """Some messages are not where the caller has read them. Nothing was changed.

    Attributes:
        indices: of their moves.
    """

    def __init__(self, indices: Sequence[int]) -> None:
        super().__init__(indices)
        self.indices = frozenset(indices)


class BarrierError(Exception):
    """A message would become visible before the barrier. Nothing was changed.

    Attributes:
        barrier: in ticks.
    """

    def __init__(self, barrier: int) -> None:
        super().__init__(barrier)
        self.barrier = barrier


class Scheduled(NamedTuple):
    """A time that a shard was scheduled for (`expirations`)."""

    due: int
    sweeps: int
    """The shard's sweeps before it was scheduled."""


UNSCHEDULED = Scheduled(LAST_TICK, 0)


class UnscheduledError(Exception):
    """A message would be due before the time that its shard is scheduled for. Nothing was changed.

    Attributes:
        needed: what the shard has to be scheduled for.
    """

    def __init__(self, needed: Scheduled) -> None:
        super().__init__(needed)
        self.needed = needed


class Move(NamedTuple):
    """The change of one message."""

    before: MessagePosition | None
    """None: the message is new."""
    after: Message | None
    """None: the message is deleted."""


class MoveMessages:
    """Some moves of one shard, as they are committed.

    Args:
        moves: of different messages.
        barrier: raises the barrier to this time.
        floor: raises the floor to this time, at most to the barrier before this commit.
        scheduled: a time that the shard was scheduled for.
    """

    __slots__ = (
        *("_added", "_changes", "_due", "_prefixes", "_previous"),
        *("barrier", "floor", "left_until", "lifetime", "lowest", "places", "scheduled"),
    )

    def __init__(
        self, moves: Sequence[Move], barrier: int = 0, floor: int = 0, scheduled: Scheduled = UNSCHEDULED
    ) -> None:
        changes: dict[str, bytes | None] = {}
        previous: list[tuple[int, bytes] | None] = []
        prefixes: dict[str, bytes] = {}
        places: list[MessagePosition | None] = []
        added, lowest, expires, lifetime, left_until = 0, LAST_TICK, LAST_TICK, 0, 0
        for before, after in moves:
            if before is None:
                added += 1
                previous.append(None)
                if after is not None and after.expires < expires:
                    expires = after.expires
            else:
                row, head, index_row = before
                previous.append((len(changes) + 1, head))
                left_until = max(left_until, visible_at(row))
                changes[row] = None
                prefixes[row] = head
                if index_row is not None:
                    changes[index_row] = None
            if after is None:
                added -= 1
                places.append(None)
                continue
            lowest = min(lowest, after.visible)
            lifetime = max(lifetime, after.expires - after.visible)
            place = after.place
            row, head, index_row = place
            places.append(place)
            changes[row] = head + after.text
            if index_row is not None:
                changes[index_row] = after.index_value
        self._prefixes = prefixes
        self._changes = changes
        self._previous = previous
        """By move: the index of the message's row among the others, and the prefix of its value."""
        self._added = added
        self._due = slot_of(expires) if expires < LAST_TICK else LAST_TICK
        self.scheduled = scheduled
        self.lowest = lowest
        """The earliest time of visibility that it gives a message."""
        self.lifetime = lifetime
        """The longest time from the visibility of a message to its expiration."""
        self.barrier = barrier
        self.floor = floor
        self.left_until = left_until
        """The latest time of visibility of the rows that it deletes."""
        self.places = places
        """By move: where the message is afterwards; None: it is gone."""

    def commit(self) -> Commit[ShardState]:
        """Return the commit. Its result is the shard after it.

        It raises `MessagesGoneError`, `BarrierError`, `UnscheduledError`: see there.
        """
        return Commit([STATE_ROW, *self._changes], self.decide, self._expected, STATE_ROW)

    def _expected(self, _: Values | None) -> list[Precondition | None]:
        expected: list[Precondition | None] = [None]
        for row in self._changes:
            head = self._prefixes.get(row)
            expected.append(ANYTHING if head is None else Precondition(Expect.PRESENT, prefix=head, example=head))
        return expected

    def decide(self, current: Values, _: int) -> Decision[ShardState]:
        """Decide the commit, see `commit`."""
        state = read_state(current[0])
        gone = [
            index
            for index, before in enumerate(self._previous)
            if before is not None and not (current[before[0]] or b"").startswith(before[1])
        ]
        if gone:
            raise MessagesGoneError(gone)
        if self.lowest < state.barrier:
            raise BarrierError(state.barrier)
        due = state.due
        if self._due < due:
            if self.scheduled.sweeps != state.sweeps or self._due < self.scheduled.due:
                raise UnscheduledError(Scheduled(self._due, state.sweeps))
            due = self.scheduled.due
        after = ShardState(
            max(state.barrier, self.barrier),
            max(state.floor, min(self.floor, state.barrier)),
            max(0, state.messages + self._added),
            due,
            state.sweeps,
            max(state.lifetime if state.messages else 0, self.lifetime),
        )
        changes = self._changes if after == state else {STATE_ROW: after.value, **self._changes}  # As in `commit`.
        return Decision(changes, after)
