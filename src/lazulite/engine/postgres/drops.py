"""Dropped spaces: closed at once, known to every process soon, emptied in bounded steps by any one of them.

A space that is dropped stands in `dropped` until it is surely empty: rows may still come from a process that had not
heard of it, so it is emptied twice: soon, and when that is over for sure. Who empties it holds a lease; if it dies,
the lease ends by the database's clock and another one goes on.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from lazulite.engine.contract import EngineError
from lazulite.engine.postgres.pool import Pool

STEP_ROWS = 1000

_NOTE = "INSERT INTO lazulite.dropped (space) VALUES ($1) ON CONFLICT (space) DO NOTHING"
_ALL = "SELECT space FROM lazulite.dropped"
_DUE = """
SELECT space, since < now() - interval '15 minutes' AS settled FROM lazulite.dropped
WHERE since < now() - interval '5 seconds' AND leased_until < now() ORDER BY leased_until LIMIT 1
"""
"""Five seconds: by then the others know, and none of them shows what is half gone."""
_LEASE = """
UPDATE lazulite.dropped SET leased_until = now() + interval '1 minute' WHERE space = $1 AND leased_until < now()
RETURNING space
"""
_RENEW = "UPDATE lazulite.dropped SET leased_until = now() + interval '1 minute' WHERE space = $1"
_PUT_OFF = "UPDATE lazulite.dropped SET leased_until = now() + interval '15 minutes' WHERE space = $1"
"""Reckoned from now: Citus refuses what is not immutable and takes a column."""
_FORGET = "DELETE FROM lazulite.dropped WHERE space = $1"

_ROWS = (
    """
SELECT partition_key, row_key FROM lazulite.rows WHERE space = $1 AND (partition_key, row_key) >= ($2, $3)
ORDER BY partition_key, row_key LIMIT 1 OFFSET $4
""",
    """
DELETE FROM lazulite.rows WHERE space = $1 AND (partition_key, row_key) >= ($2, $3)
    AND (partition_key, row_key) <= ($4, $5)
""",
    "DELETE FROM lazulite.rows WHERE space = $1 AND (partition_key, row_key) >= ($2, $3)",
)
"""The key of the row that ends a step; delete up to it; delete the rest, which are few. Each goes on where the one
before ended: what was deleted would be gone through again, until the database has tidied up."""
_HEADS = (
    """
SELECT partition_key FROM lazulite.partitions WHERE space = $1 AND partition_key >= $2
ORDER BY partition_key LIMIT 1 OFFSET $3
""",
    "DELETE FROM lazulite.partitions WHERE space = $1 AND partition_key >= $2 AND partition_key <= $3",
    "DELETE FROM lazulite.partitions WHERE space = $1 AND partition_key >= $2",
)


class Drops:
    """The spaces that were dropped, as far as this process knows.

    Args:
        pool: of connections.
        seconds: how often it is looked what others dropped, and what is to be emptied.

    Attributes:
        closed: the spaces.
    """

    def __init__(self, pool: Pool, seconds: float) -> None:
        self._pool = pool
        self._seconds = seconds
        self._mine: set[int] = set()
        self.closed: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def drop(self, space: int) -> None:
        """Close a space."""
        await self._pool.fetch(_NOTE, space)
        self._mine.add(space)
        self.closed.add(space)

    async def look(self) -> None:
        """Learn what others dropped."""
        self.closed = self._mine.union(record[0] for record in await self._pool.fetch(_ALL, reads=True))

    def start(self) -> None:
        """Begin to watch and to empty, each by itself: a large space takes long."""
        self._tasks = [asyncio.create_task(self._repeated(each)) for each in (self.look, self._reclaim_all)]

    async def close(self) -> None:
        """End that; what is half emptied another process finishes, or this one when it starts again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeated(self, action: Callable[[], Awaitable[object]]) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            with contextlib.suppress(EngineError):  # The database is away; it is asked again.
                await action()

    async def reclaim(self) -> bool:
        """Empty one space that is due, if no other process is about it; say whether there was one."""
        due = await self._pool.fetch(_DUE, reads=True)
        if not due:
            return False
        space, settled = due[0]
        if not await self._pool.fetch(_LEASE, space):
            return False
        await self._empty(space, _ROWS, (b"", b""))
        await self._empty(space, _HEADS, (b"",))
        await self._pool.fetch(_FORGET if settled else _PUT_OFF, space)
        return True

    async def _reclaim_all(self) -> None:
        while await self.reclaim():
            pass

    async def _empty(self, space: int, statements: tuple[str, str, str], start: tuple[bytes, ...]) -> None:
        boundary, delete, delete_rest = statements
        while end := await self._pool.fetch(boundary, space, *start, STEP_ROWS - 1, reads=True):
            await self._pool.fetch(delete, space, *start, *end[0])
            await self._pool.fetch(_RENEW, space)
            start = tuple(end[0])
        await self._pool.fetch(delete_rest, space, *start)
