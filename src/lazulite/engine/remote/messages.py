"""The IPC protocol between the primary, which has an engine, and a worker, which uses it. See `Channel`.

    to the primary                                to the worker
    (GET, n, space, partition, row)               (DONE, n, result)
    (COMMIT, n, space, partition, name, argument) (REJECTED, n, rejection)
    (WRITE, n, space, name, keys, expected, parts, together)
    (DROP, n, space)                              (FAILED, n, kind of EngineError, text)
    (CHECK, n)
    (FLUSH, n)
    (CALL, n, procedure, arguments)
    (SCAN, n, space, ranges, limit, keys_only)    (SLICE, n, keys, values), then DONE or FAILED
    (MORE, n)      one slice was used
    (STOP, n)      no more of this scan
    (OPEN, n)      a snapshot, whose number is n
    (KEYS, n, snapshot, space, range, limit)
    (VALUES, n, snapshot, space, keys)
    (RELEASE, n, snapshot)
    (ACKNOWLEDGE, m)                              (INVALIDATE, m, space, keys): evict these rows, then acknowledge
                                                  (END_INVALIDATION, space, keys)

`n` is the worker's number of a call, `m` the primary's number of a change. A scan may be `SLICES_AHEAD` slices ahead of
its reader. A `COMMIT` has the name of a `CommitProcedure` and what it encoded; a `Codec` has all of these, and encodes
rejections. A `WRITE` has conditional writes (see `conditional_writes`). A `CALL` runs a procedure
that a service registers at the primary: work for which all workers share one memory.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeAlias

from lazulite.engine.commit import Plain
from lazulite.engine.content.contract import ContentDamagedError, ContentMissingError
from lazulite.engine.contract import (
    EngineError,
    EngineUnavailableError,
    Key,
    SpaceDroppedError,
)

GET, COMMIT, WRITE, DROP, CHECK, FLUSH, CALL, SCAN, MORE, STOP, ACKNOWLEDGE = range(11)
"""Messages to the primary."""
DONE, REJECTED, FAILED, SLICE, INVALIDATE, END_INVALIDATION = range(11, 17)
"""Messages to the worker."""
FORWARD, PING, DECLINED, PONG, LEAVE = range(17, 22)
"""Messages between the processes of a database, see `peers`."""
OPEN, KEYS, VALUES, RELEASE = range(22, 26)
"""Messages to the primary, about snapshots."""

SLICES_AHEAD = 2

ENGINE_ERRORS: tuple[type[EngineError], ...] = (
    EngineUnavailableError,
    SpaceDroppedError,
    ContentMissingError,
    ContentDamagedError,
    EngineError,
)


Procedure: TypeAlias = Callable[..., Coroutine[Any, Any, Plain]]
"""Takes and returns plain values; raises errors of the engine, and rejections that the codec knows."""


class Primary(Protocol):
    """The process that has the store, as its workers see it."""

    async def call(self, procedure: str, *arguments: Plain) -> Plain:
        """Run a procedure of the primary; return its result, or raise its error."""
        ...


class CacheInvalidation(Protocol):
    """Cache invalidation with acknowledgement: a cache of a space's rows that other processes change."""

    def begin_invalidation(self, key: Key, /) -> None:
        """Evict a row, and do not cache it again before the invalidation ends. Returning acknowledges it."""
        ...

    def end_invalidation(self, key: Key, /) -> None:
        """Allow the row to be cached again: the outcome of its change is known."""
        ...
