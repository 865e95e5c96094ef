"""The commits of a sweep, which removes the expired messages of a shard. See `expirations` for their order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lazulite.protocol.clock import LAST_TICK
from lazulite.queue.model.message import row_of_index
from lazulite.queue.model.moves import STATE_ROW, Scheduled, ShardState, read_state

_SWEEPS_END = 1 << 32


class BeginSweep:
    """A `CommitFunction` of the row of a shard: from now on, each put has to schedule the shard itself."""

    def __init__(self) -> None:
        self.state: ShardState | None = None
        """The shard after the commit; None if there is none."""

    def __call__(self, current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
        """See `CommitFunction`."""
        self.state = None
        if current[0] is None:  # Perhaps the space was reclaimed: no row may appear in it.
            return {}
        state = read_state(current[0])
        self.state = state._replace(due=LAST_TICK, sweeps=(state.sweeps + 1) % _SWEEPS_END)
        return {STATE_ROW: self.state.value}


class RemoveExpired:
    """A `CommitFunction`: remove expired messages; its rows are `rows`.

    Args:
        index_rows: with their values. A message that has moved since they were read stays.
    """

    def __init__(self, index_rows: Sequence[tuple[str, bytes]]) -> None:
        self._index = index_rows
        self.rows = [STATE_ROW]
        for row, value in index_rows:
            self.rows += (row, row_of_index(row, value))
        self.removed = 0
        """How many messages the commit removed."""
        self.moved = False
        """Whether some have moved, and were left."""

    def __call__(self, current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
        """See `CommitFunction`."""
        changes: dict[str, bytes | None] = {}
        self.removed, self.moved = 0, False
        for number, (index_row, value) in enumerate(self._index):
            at = 2 * number + 1
            if current[at] == value:
                changes[index_row] = changes[self.rows[at + 1]] = None
                self.removed += current[at + 1] is not None
            elif current[at] is not None:
                self.moved = True
        state = read_state(current[0])
        return {**changes, STATE_ROW: state._replace(messages=max(0, state.messages - self.removed)).value}


@dataclass(frozen=True, slots=True)
class EndSweep:
    """A `CommitFunction` of the row of a shard: no message is due before the time that it was scheduled for."""

    scheduled: Scheduled

    def __call__(self, current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
        """See `CommitFunction`."""
        state = read_state(current[0])
        if current[0] is None or state.sweeps != self.scheduled.sweeps:
            return {}  # Another sweep has begun, and ends this way.
        return {STATE_ROW: state._replace(due=min(state.due, self.scheduled.due)).value}
