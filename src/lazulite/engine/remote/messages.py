"""What is said over a `Link` between a process that has an engine and one that uses it.

    to the owner                                  to the front end
    (GET, n, space, partition, row)               (DONE, n, result)
    (COMMIT, n, space, partition, rows, decision) (REFUSED, n, refusal)
    (DROP, n, space)                              (FAILED, n, kind of EngineError, text)
    (CHECK, n)
    (SCAN, n, space, ranges, limit)               (SLICE, n, keys, values), then DONE or FAILED
    (MORE, n)      one slice was used
    (STOP, n)      no more of this scan
    (HELD, m)                                     (HOLD, m, space, keys): forget these rows, then say HELD
                                                  (RELEASE, space, keys)

`n` is the front end's number of a call, `m` the owner's number of a change. A scan may be `SLICES_AHEAD` slices ahead
of its reader. What a commit decides, and how it refuses, crosses as plain values; a `Wording` says which.
"""

from typing import Protocol

from lazulite.engine.contract import (
    Decide,
    EngineError,
    EngineUnavailableError,
    Key,
    SpaceDroppedError,
)
from lazulite.engine.remote.channel import Plain

GET, COMMIT, DROP, CHECK, SCAN, MORE, STOP, HELD = range(8)
"""What a front end says."""
DONE, REFUSED, FAILED, SLICE, HOLD, RELEASE = range(8, 14)
"""What the owner says."""

SLICES_AHEAD = 2

ENGINE_ERRORS: tuple[type[EngineError], ...] = (
    EngineUnavailableError,
    SpaceDroppedError,
    EngineError,
)


class Watcher(Protocol):
    """Is told of changes to the rows of a space that it remembers."""

    def hold(self, key: Key, /) -> None:
        """Forget a row, and remember nothing of it for now."""
        ...

    def release(self, key: Key, /) -> None:
        """Remember the row again: its change is over."""
        ...


class Wording(Protocol):
    """How decisions and refusals are told to another process of the same program."""

    def tell_decision(self, decide: Decide) -> Plain:
        """Return a decision as values."""
        ...

    def decision(self, told: Plain) -> Decide:
        """Return the decision that was told."""
        ...

    def tell_refusal(self, refusal: Exception) -> Plain:
        """Return a refusal as values; what is no refusal but a defect is raised again."""
        ...

    def refusal(self, told: Plain) -> Exception:
        """Return the refusal that was told."""
        ...
