"""The statements that write, read, copy and delete contents, in steps of bounded length and memory."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from secrets import randbits

import asyncpg
from isal.isal_zlib import crc32

from lazulite.engine.content.contract import (
    WINDOW_BYTES,
    Claim,
    ContentDamagedError,
    ContentId,
    ContentMissingError,
    Owner,
)
from lazulite.engine.content.footer import windows
from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.engine.postgres.citus.hash_bytes import bigint_bytes
from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.contents import statements
from lazulite.engine.postgres.pool import Pool

_BLOCK, _BLOCK_BITS = 4096, 50
"""A process takes random blocks of numbers, so that it asks no other one for the next. Copied to files, the contents of
a block are in one directory."""
_SPACES_MAX = 10_000
"""So many spaces have a block; then all begin new ones."""
_STEP_WINDOWS = 1024
"""Copied or deleted by one statement: 256 MiB take a second or two."""
_READ_WINDOWS = 4
"""Read by one statement, while the ones before are sent."""


class ContentWindows:
    """The rows of contents.

    Args:
        pool: connections to the database.
        shards: where contents are.
        unsynced: whether a window need not be on the disk before its content is sealed, as all of the database's
            transactions of one content are in one log.
    """

    def __init__(self, pool: Pool, shards: ShardMap, *, unsynced: bool) -> None:
        self._pool = pool
        self._shards = shards
        self._next: dict[int, int] = {}
        """By space: the next number of its block."""
        self._add_window = statements.ADD_WINDOW_UNSYNCED if unsynced else statements.ADD_WINDOW

    async def begin(self, owner: Owner, number: int | None = None) -> ContentId:
        """Make the head of a new content, under a number if one is given; another content of that name is deleted."""
        if number is not None:
            await self.delete(owner.space, [number])
        while True:
            content = ContentId(owner.space, self._next_number(owner.space) if number is None else number)
            if await self._ask(statements.BEGIN, content, owner.partition.encode()):
                return content
            self._next.pop(owner.space, None)

    def _next_number(self, space: int) -> int:
        number = self._next.get(space, 0)
        if number % _BLOCK == 0:
            if len(self._next) >= _SPACES_MAX:
                self._next.clear()
            number = randbits(_BLOCK_BITS) * _BLOCK
        self._next[space] = number + 1
        return number

    async def touch(self, content: ContentId) -> None:
        """Begin the hour of an unsealed content again."""
        await self._ask(statements.TOUCH, content)

    async def add(self, content: ContentId, number: int, window: bytes) -> None:
        """Write a window.

        Raises:
            EngineUnavailableError: it is not written; perhaps because the content was given up.
        """
        try:
            await self._ask(self._add_window, content, number, crc32(window), window)
        except EngineError as error:
            raise EngineUnavailableError(f"a content cannot be written: {error}") from error

    async def seal(self, content: ContentId, length: int) -> None:
        """Make a content durable.

        Raises:
            EngineUnavailableError: it is not, or the database lost a part of it, or its hour has passed.
        """
        if not await self._ask(statements.SEAL, content, length, windows(length)):
            raise EngineUnavailableError("a content took more than an hour, or a part of it was lost; write it again")

    async def keep(self, space: int, numbers: Collection[int]) -> None:
        """Note that rows refer to contents."""
        for node, some in self._by_node(numbers):
            await self._pool.fetch_bulk(statements.KEEP, space, some, node=node)

    async def length(self, content: ContentId, claim: Claim | None = None) -> int:
        """Return the length of a content.

        Raises:
            ContentMissingError: there is no such content.
            ContentDamagedError: it is not the one of the claim.
        """
        found = await self._ask(statements.LENGTH, content, reads=True)
        if not found:
            raise ContentMissingError("there is no such content")
        length, partition = found[0]
        if claim is not None and (bytes(partition) != claim.partition.encode() or claim.length not in (None, length)):
            raise ContentDamagedError("the content is that of another row")
        return int(length)

    async def read(self, content: ContentId, start: int, stop: int) -> AsyncGenerator[bytes, None]:
        """Yield bytes of a content, one window or a part of it at a time. While some are sent, the next are read."""
        first, after = start // WINDOW_BYTES, windows(stop)
        batches = [(at, min(at + _READ_WINDOWS, after)) for at in range(first, after, _READ_WINDOWS)]
        ahead = asyncio.create_task(self._fetch(content, batches[0]))
        try:
            for index, (number, _) in enumerate(batches):
                found = await ahead
                if index + 1 < len(batches):
                    ahead = asyncio.create_task(self._fetch(content, batches[index + 1]))
                for offset, window in enumerate(found):
                    base = (number + offset) * WINDOW_BYTES
                    if len(window) != WINDOW_BYTES and base + len(window) < stop:
                        raise ContentDamagedError("a content is shorter than its row says")
                    yield window[max(0, start - base) : stop - base]
        finally:
            with suppress(EngineError):
                await ahead  # It takes less time than to connect again, which a cancelled statement costs.

    async def _fetch(self, content: ContentId, batch: tuple[int, int]) -> Sequence[bytes]:
        rows = await self._ask(statements.WINDOWS, content, *batch, reads=True)
        if len(rows) != batch[1] - batch[0]:
            await self.length(content)  # Raises ContentMissingError.
            raise ContentDamagedError("a content is shorter than its row says")
        if any(crc32(window) != checksum for checksum, window in rows):
            raise ContentDamagedError("the bytes of a content are damaged")
        return [window for _, window in rows]

    async def copy(self, source: ContentId, target: ContentId) -> int:
        """Copy the windows of a content to an unsealed one; return the length.

        Raises:
            ContentMissingError: there is no such content.
        """
        length = await self.length(source)
        for first in range(0, windows(length), _STEP_WINDOWS):
            step = (first, first + _STEP_WINDOWS)
            await self._pool.fetch_bulk(statements.COPY_WINDOWS, *target, *source, *step)
        return length

    async def delete(self, space: int, numbers: Collection[int]) -> None:
        """Delete contents; unknown ones are passed over.

        Of a node that is silent, none is deleted: the first statement on it is short, and shows that.
        """
        large_bytes = _STEP_WINDOWS * WINDOW_BYTES
        for node, contents in self._by_node(numbers):
            for (number,) in await self._pool.fetch_bulk(
                statements.DOOM_LARGE, space, contents, large_bytes, node=node
            ):
                stop = _STEP_WINDOWS
                while await self._pool.fetch_bulk(statements.DELETE_WINDOWS, space, number, stop):
                    stop += _STEP_WINDOWS
            await self._pool.fetch_bulk(statements.DELETE, space, contents)

    async def empty(self, space: int) -> None:
        """Delete all contents of a space."""
        while found := await self._pool.fetch_bulk(statements.OF_SPACE, space, _STEP_WINDOWS, reads=True):
            await self.delete(space, [number for (number,) in found])

    async def _ask(
        self, statement: str, content: ContentId, *arguments: object, reads: bool = False
    ) -> list[asyncpg.Record]:
        """Run a short statement on one content, on its node."""
        return await self._pool.fetch_bulk(
            statement, *content, *arguments, reads=reads, node=self._node(content.number)
        )

    def _by_node(self, numbers: Collection[int]) -> Iterator[tuple[int, list[int]]]:
        """Yield the nodes of contents, with the contents of each."""
        ordered = sorted(numbers, key=self._node)
        return ((node, sorted(some)) for node, some in groupby(ordered, self._node))

    def _node(self, number: int) -> int:
        return self._shards.node(bigint_bytes(number))
