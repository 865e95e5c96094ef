"""Dropped spaces: closed at once here, soon in every process, and emptied in bounded steps by one of the processes.

A dropped space is listed in `dropped` until it is certainly empty. A process that has not read the list yet may still
write rows, so the space is emptied twice: soon, and after a time when every process has read it. The process that
empties it holds a lease; if that process dies, the lease expires by the database's clock and another one continues.
"""

from collections.abc import Awaitable, Callable

from lazulite.engine.postgres.pool import Pool

STEP_ROWS = 1000

_NOTE = "INSERT INTO lazulite.dropped (space) VALUES ($1) ON CONFLICT (space) DO NOTHING"
_ALL = "SELECT space FROM lazulite.dropped"
_DUE = """
SELECT space, since < now() - interval '15 minutes' AS settled FROM lazulite.dropped
WHERE since < now() - interval '5 seconds' AND leased_until < now() ORDER BY leased_until LIMIT 1
"""
"""Five seconds: by then all processes have read the list, and none shows a space that is partly empty."""
_LEASE = """
UPDATE lazulite.dropped SET leased_until = now() + interval '1 minute' WHERE space = $1 AND leased_until < now()
RETURNING space
"""
_RENEW = "UPDATE lazulite.dropped SET leased_until = now() + interval '1 minute' WHERE space = $1"
_PUT_OFF = "UPDATE lazulite.dropped SET leased_until = now() + interval '15 minutes' WHERE space = $1"
"""Computed from now(): Citus rejects expressions of a column that are not immutable."""
_DELETE = "DELETE FROM lazulite.dropped WHERE space = $1"

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
"""The key of the row that ends a step; delete up to it; delete the few rest. Each step starts where the one before
ended: otherwise it would visit the deleted rows again until the database has vacuumed them."""
_VERSION_ROWS = (
    """
SELECT partition_key FROM lazulite.partitions WHERE space = $1 AND partition_key >= $2
ORDER BY partition_key LIMIT 1 OFFSET $3
""",
    "DELETE FROM lazulite.partitions WHERE space = $1 AND partition_key >= $2 AND partition_key <= $3",
    "DELETE FROM lazulite.partitions WHERE space = $1 AND partition_key >= $2",
)


class DroppedSpaceCache:
    """The dropped spaces that this process knows.

    Args:
        pool: connections to the database.
        empty_contents: deletes the contents of a space.

    Attributes:
        closed: the dropped spaces.
    """

    def __init__(self, pool: Pool, empty_contents: Callable[[int], Awaitable[None]]) -> None:
        self._pool = pool
        self._empty_contents = empty_contents
        self._mine: set[int] = set()
        self.closed: set[int] = set()

    async def drop(self, space: int) -> None:
        """Close a space."""
        await self._pool.fetch(_NOTE, space, everywhere=True)
        self._mine.add(space)
        self.closed.add(space)

    async def reload(self) -> None:
        """Read the list of dropped spaces."""
        self.closed = self._mine.union(record[0] for record in await self._pool.fetch(_ALL, reads=True))

    async def reclaim(self) -> bool:
        """Empty one space that is due, unless another process holds its lease; return whether there was one."""
        due = await self._pool.fetch(_DUE, reads=True)
        if not due:
            return False
        space, settled = due[0]
        if not await self._pool.fetch(_LEASE, space):
            return False
        await self._empty(space, _ROWS, (b"", b""))
        await self._empty(space, _VERSION_ROWS, (b"",))
        await self._empty_contents(space)
        await self._pool.fetch(_DELETE if settled else _PUT_OFF, space)
        return True

    async def reclaim_all(self) -> None:
        """Empty the spaces that are due; if this is cancelled, another process or a later call empties the rest."""
        while await self.reclaim():
            pass

    async def _empty(self, space: int, statements: tuple[str, str, str], start: tuple[bytes, ...]) -> None:
        boundary, delete, delete_rest = statements
        while end := await self._pool.fetch(boundary, space, *start, STEP_ROWS - 1, reads=True):
            await self._pool.fetch(delete, space, *start, *end[0])
            await self._pool.fetch(_RENEW, space)
            start = tuple(end[0])
        await self._pool.fetch(delete_rest, space, *start)
