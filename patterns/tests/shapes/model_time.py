"""What the protocols with a collection assume of time, in models without a clock."""

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read, Write
from lazulite_patterns_simulation import World
from lazulite_patterns_simulation.world import Request

_OVER = EntityKey("over", "")
"""Where it stands that the grace of all rows and blobs so far is over."""


class Timed(World):
    """No entity of `t` is written after the grace of its rows or its blob."""

    def perform(self, effect: Request, now_seconds: float = 0.0) -> tuple[World, object]:
        writes = isinstance(effect, Write) and effect.table == "t" and effect.operation.kind is not Kind.DELETE
        if writes and self.entity("clock", _OVER) is not None:
            raise Rejected(400, "TooLate")
        after, answer = super().perform(effect, now_seconds)
        return Timed(after._rows, after._queues, after._containers), answer


def passing() -> Protocol[object]:
    """Let the grace of all rows and blobs so far end."""
    return (yield from perform(Write("clock", Operation(Kind.PUT, _OVER))))


def is_over() -> Protocol[bool]:
    """Ask whether the grace has ended."""
    return (yield from perform(Read("clock", _OVER))) is not None
