"""Contents in a database that several processes share.

Invariants: see `engine.content.contract` and `schema`. A content that is neither kept nor referred to is undecided for
an hour of the database's time, whichever process wrote it. Then any process may delete it. A writer that seals within
its hour has another one for the commit of its row.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing, suppress

from lazulite.engine.content.contract import WINDOW_BYTES, Claim, ContentId, ContentMissingError, Owner, References
from lazulite.engine.contract import EngineError, SpaceDroppedError
from lazulite.engine.postgres.contents import statements
from lazulite.engine.postgres.contents.windows import ContentWindows
from lazulite.engine.postgres.drops import DroppedSpaceCache
from lazulite.engine.postgres.pool import Pool

TOUCH_SECONDS = 600.0
"""How often a slow writer says that it lives, which gives it another hour."""

_SWEPT_AT_ONCE = 1000


class RowWriter:
    """Implements `ContentWriter`. While one window is written, another one is collected.

    Args:
        rows: of contents.
        content: its head exists.
        check_not_dropped: takes the number of a space, and raises `SpaceDroppedError` if it was dropped.
    """

    def __init__(self, rows: ContentWindows, content: ContentId, check_not_dropped: Callable[[int], None]) -> None:
        self.length = 0
        self._rows = rows
        self._content = content
        self._check_not_dropped = check_not_dropped
        self._collected = bytearray()
        self._count = 0
        self._writing: asyncio.Task[None] | None = None
        self._touched = asyncio.get_running_loop().time()
        self._sealed = False

    async def write(self, chunk: bytes) -> None:
        """See `ContentWriter`."""
        self.length += len(chunk)
        self._collected += chunk
        while len(self._collected) >= WINDOW_BYTES:
            window = bytes(memoryview(self._collected)[:WINDOW_BYTES])
            del self._collected[:WINDOW_BYTES]
            await self._add(window)

    async def copy(self, source: ContentId) -> None:
        """Take the bytes of another content, and no others.

        Raises:
            ContentMissingError: there is no such content.
            EngineUnavailableError: it cannot be copied.
        """
        self.length = await self._rows.copy(source, self._content)

    async def seal(self) -> ContentId:
        """See `ContentWriter`."""
        if self._collected:
            await self._add(bytes(self._collected))
        await self._written()
        self._check_not_dropped(self._content.space)
        await self._rows.seal(self._content, self.length)
        self._sealed = True
        return self._content

    async def discard(self) -> None:
        """See `ContentWriter`. What cannot be deleted now is deleted after its hour."""
        if self._sealed:
            return
        with suppress(EngineError):
            await self._written()
        with suppress(EngineError):
            await self._rows.delete(self._content.space, [self._content.number])

    async def _add(self, window: bytes) -> None:
        await self._written()
        self._writing = asyncio.create_task(self._write(self._count, window))
        self._count += 1

    async def _write(self, number: int, window: bytes) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._touched + TOUCH_SECONDS:
            await self._rows.touch(self._content)
            self._touched = now
        await self._rows.add(self._content, number, window)

    async def _written(self) -> None:
        if self._writing is not None:
            await asyncio.shield(self._writing)


class PostgresContents:
    """Implements `ContentStore`. It is closed before the engine whose connections it uses.

    Args:
        pool: the engine's connections.
        rows: of contents.
        drops: the engine's dropped spaces, which are emptied with their contents.
    """

    def __init__(self, pool: Pool, rows: ContentWindows, drops: DroppedSpaceCache) -> None:
        self._pool = pool
        self._rows = rows
        self._drops = drops
        self._kept: defaultdict[int, set[int]] = defaultdict(set)
        self._keeping: asyncio.Task[None] | None = None

    async def sweep(self, references: References) -> int:
        """See `ContentStore`. Any process may do this at any time: only what is an hour old is looked at."""
        removed = 0
        while heads := await self._pool.fetch(statements.UNDECIDED, _SWEPT_AT_ONCE, reads=True):
            overdue: defaultdict[int, list[int]] = defaultdict(list)
            for space, number, partition, state in heads:
                owner = Owner(space, partition.decode())
                if state == "sealed" and ContentId(space, number) in await references(owner):
                    await self._rows.keep(space, [number])
                else:
                    overdue[space].append(number)
            for space, numbers in overdue.items():
                doomed = [each[0] for each in await self._pool.fetch(statements.DOOM_OVERDUE, space, numbers)]
                await self._rows.delete(space, doomed)
                removed += len(doomed)
        return removed

    async def create(self, owner: Owner, number: int | None = None) -> RowWriter:
        """See `ContentStore`."""
        self._check_not_dropped(owner.space)
        return RowWriter(self._rows, await self._rows.begin(owner, number), self._check_not_dropped)

    async def length(self, content: ContentId, claim: Claim | None = None) -> int:
        """See `ContentStore`."""
        return await self._rows.length(content, claim)

    async def copy(self, content: ContentId, owner: Owner, claim: Claim | None = None) -> ContentId:
        """See `ContentStore`. The bytes do not leave the database."""
        if claim is not None:
            await self._rows.length(content, claim)
        writer = await self.create(owner)
        try:
            await writer.copy(content)
            return await writer.seal()
        except EngineError:
            await writer.discard()
            raise

    async def read(
        self, content: ContentId, start: int, stop: int, claim: Claim | None = None
    ) -> AsyncGenerator[bytes, None]:
        """See `ContentStore`. Rows do not change places, so the claim is compared by `length` and `copy` alone."""
        del claim
        if start >= stop:
            return
        if content.space in self._drops.closed:
            raise ContentMissingError("there is no such content")
        async with aclosing(self._rows.read(content, start, stop)) as pieces:
            async for piece in pieces:
                yield piece

    def keep(self, content: ContentId) -> None:
        """See `ContentStore`. What is not noted because the database fails remains undecided."""
        self._kept[content.space].add(content.number)
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.get_running_loop().create_task(self._keep_all())

    async def delete(self, contents: Collection[ContentId]) -> None:
        """See `ContentStore`."""
        by_space: defaultdict[int, list[int]] = defaultdict(list)
        for space, number in contents:
            by_space[space].append(number)
        for space, numbers in by_space.items():
            await self._rows.delete(space, numbers)

    async def drop(self, space: int) -> None:
        """See `ContentStore`. It drops the space of the engine, too."""
        await self._drops.drop(space)

    async def close(self) -> None:
        """See `ContentStore`."""
        if self._keeping is not None:
            await self._keeping

    def _check_not_dropped(self, space: int) -> None:
        """Raise `SpaceDroppedError` if a space was dropped."""
        if space in self._drops.closed:
            raise SpaceDroppedError(f"space {space} was dropped")

    async def _keep_all(self) -> None:
        while self._kept:
            space, numbers = self._kept.popitem()
            with suppress(EngineError):
                await self._rows.keep(space, numbers)
