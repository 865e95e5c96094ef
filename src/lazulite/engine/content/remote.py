"""The contents in the memory of the primary, for its workers: a call for each window.

Contents in files need no primary: each worker reads and writes them itself. What a killed worker had begun stays in the
primary's memory, which ends with the service.
"""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from itertools import count

from lazulite.engine.commit import Plain
from lazulite.engine.content.contract import (
    WINDOW_BYTES,
    Claim,
    ContentId,
    ContentStore,
    ContentWriter,
    Owner,
    References,
)
from lazulite.engine.remote.messages import Primary, Procedure

_CREATE, _WRITE, _SEAL, _DISCARD, _LENGTH, _COPY, _READ, _DELETE, _DROP = (
    f"content.{name}" for name in ("create", "write", "seal", "discard", "length", "copy", "read", "delete", "drop")
)


_PlainClaim = tuple[str, int | None] | None


def _plain(claim: Claim | None) -> _PlainClaim:
    return None if claim is None else (claim.partition, claim.length)


def _claim(plain: _PlainClaim) -> Claim | None:
    return None if plain is None else Claim(*plain)


class RemoteWriter:
    """Implements `ContentWriter`."""

    def __init__(self, primary: Primary, number: int) -> None:
        self.length = 0
        self._primary = primary
        self._number = number
        """Of the primary's writer."""

    async def write(self, chunk: bytes) -> None:
        """See `ContentWriter`."""
        self.length += len(chunk)
        await self._primary.call(_WRITE, self._number, bytes(chunk))

    async def seal(self) -> ContentId:
        """See `ContentWriter`."""
        return ContentId(*await self._primary.call(_SEAL, self._number))

    async def discard(self) -> None:
        """See `ContentWriter`."""
        await self._primary.call(_DISCARD, self._number)


class RemoteContents:
    """Implements `ContentStore`. The primary sweeps, and in memory no content is ever undecided."""

    def __init__(self, primary: Primary) -> None:
        self._primary = primary

    async def sweep(self, references: References) -> int:
        """See `ContentStore`."""
        del references
        return 0

    async def create(self, owner: Owner, number: int | None = None) -> RemoteWriter:
        """See `ContentStore`."""
        return RemoteWriter(self._primary, await self._primary.call(_CREATE, *owner, number))

    async def length(self, content: ContentId, claim: Claim | None = None) -> int:
        """See `ContentStore`."""
        length: int = await self._primary.call(_LENGTH, *content, _plain(claim))
        return length

    async def copy(self, content: ContentId, owner: Owner, claim: Claim | None = None) -> ContentId:
        """See `ContentStore`."""
        return ContentId(*await self._primary.call(_COPY, *content, *owner, _plain(claim)))

    async def read(
        self, content: ContentId, start: int, stop: int, claim: Claim | None = None
    ) -> AsyncGenerator[bytes, None]:
        """See `ContentStore`."""
        for at in range(start, stop, WINDOW_BYTES):
            yield await self._primary.call(_READ, *content, at, min(at + WINDOW_BYTES, stop), _plain(claim))

    def keep(self, content: ContentId) -> None:
        """See `ContentStore`."""

    async def delete(self, contents: Collection[ContentId]) -> None:
        """See `ContentStore`."""
        await self._primary.call(_DELETE, [tuple(content) for content in contents])

    async def drop(self, space: int) -> None:
        """See `ContentStore`."""
        await self._primary.call(_DROP, space)

    async def close(self) -> None:
        """See `ContentStore`."""


def content_procedures(store: ContentStore) -> Mapping[str, Procedure]:
    """Return what `RemoteContents` calls at the primary that has a store."""
    numbers, writers = count(), dict[int, ContentWriter]()

    async def create(space: int, partition: str, content: int | None) -> Plain:
        number = next(numbers)
        writers[number] = await store.create(Owner(space, partition), content)
        return number

    async def write(number: int, chunk: bytes) -> Plain:
        await writers[number].write(chunk)

    async def seal(number: int) -> Plain:
        content = await writers[number].seal()
        del writers[number]
        return tuple(content)

    async def discard(number: int) -> Plain:
        writer = writers.pop(number, None)
        if writer is not None:
            await writer.discard()

    async def length(space: int, number: int, claim: _PlainClaim) -> Plain:
        return await store.length(ContentId(space, number), _claim(claim))

    async def copy(space: int, number: int, target: int, partition: str, claim: _PlainClaim) -> Plain:
        return tuple(await store.copy(ContentId(space, number), Owner(target, partition), _claim(claim)))

    async def read(space: int, number: int, start: int, stop: int, claim: _PlainClaim) -> Plain:
        async with aclosing(store.read(ContentId(space, number), start, stop, _claim(claim))) as pieces:
            return b"".join([piece async for piece in pieces])

    async def delete(contents: list[tuple[int, int]]) -> Plain:
        await store.delete([ContentId(*content) for content in contents])

    return {
        _CREATE: create,
        _WRITE: write,
        _SEAL: seal,
        _DISCARD: discard,
        _LENGTH: length,
        _COPY: copy,
        _READ: read,
        _DELETE: delete,
        _DROP: store.drop,
    }
