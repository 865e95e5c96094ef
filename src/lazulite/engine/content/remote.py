"""The contents in the memory of the primary, for its workers: a call for each window.

Contents in files need no primary: each worker reads and writes them itself. What a killed worker had begun stays in the
primary's memory, which ends with the service.
"""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from itertools import count

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
from lazulite.engine.remote.procedures import PLAIN, Form, Interface, Method, optional, several


class ContentCalls:
    """The calls of workers for contents. A writer is a number.

    Args:
        store: of the primary.
    """

    def __init__(self, store: ContentStore) -> None:
        self._store = store
        self._numbers = count()
        self._writers: dict[int, ContentWriter] = {}

    async def create(self, owner: Owner, content: int | None) -> int:
        """Begin a content; return the number of its writer."""
        number = next(self._numbers)
        self._writers[number] = await self._store.create(owner, content)
        return number

    async def write(self, number: int, chunk: bytes) -> None:
        """See `ContentWriter`."""
        await self._writers[number].write(chunk)

    async def seal(self, number: int) -> ContentId:
        """See `ContentWriter`."""
        content = await self._writers[number].seal()
        del self._writers[number]
        return content

    async def discard(self, number: int) -> None:
        """See `ContentWriter`."""
        writer = self._writers.pop(number, None)
        if writer is not None:
            await writer.discard()

    async def length(self, content: ContentId, claim: Claim | None) -> int:
        """See `ContentStore`."""
        return await self._store.length(content, claim)

    async def copy(self, content: ContentId, owner: Owner, claim: Claim | None) -> ContentId:
        """See `ContentStore`."""
        return await self._store.copy(content, owner, claim)

    async def read(self, content: ContentId, start: int, stop: int, claim: Claim | None) -> bytes:
        """Return a window of a content."""
        async with aclosing(self._store.read(content, start, stop, claim)) as pieces:
            return b"".join([piece async for piece in pieces])

    async def delete(self, contents: Collection[ContentId]) -> None:
        """See `ContentStore`."""
        await self._store.delete(contents)

    async def drop(self, space: int) -> None:
        """See `ContentStore`."""
        await self._store.drop(space)


_CONTENT = Form(tuple, lambda sent: ContentId(*sent))
_OWNER = Form(tuple, lambda sent: Owner(*sent))
_CLAIM = optional(Form(lambda claim: (claim.partition, claim.length), lambda sent: Claim(*sent)))
_CALLS: Interface[ContentCalls] = Interface(
    "content",
    {
        "create": Method((_OWNER, PLAIN)),
        "write": Method((PLAIN, Form(bytes, bytes))),
        "seal": Method((PLAIN,), _CONTENT),
        "discard": Method((PLAIN,)),
        "length": Method((_CONTENT, _CLAIM)),
        "copy": Method((_CONTENT, _OWNER, _CLAIM), _CONTENT),
        "read": Method((_CONTENT, PLAIN, PLAIN, _CLAIM)),
        "delete": Method((several(_CONTENT),)),
        "drop": Method((PLAIN,)),
    },
)


class RemoteWriter:
    """Implements `ContentWriter`."""

    def __init__(self, calls: ContentCalls, number: int) -> None:
        self.length = 0
        self._calls = calls
        self._number = number
        """The number of the primary's writer."""

    async def write(self, chunk: bytes) -> None:
        """See `ContentWriter`."""
        self.length += len(chunk)
        await self._calls.write(self._number, chunk)

    async def seal(self) -> ContentId:
        """See `ContentWriter`."""
        return await self._calls.seal(self._number)

    async def discard(self) -> None:
        """See `ContentWriter`."""
        await self._calls.discard(self._number)


class RemoteContents:
    """Implements `ContentStore`. The primary sweeps, and in memory no content is ever undecided."""

    def __init__(self, primary: Primary) -> None:
        self._calls = _CALLS.stub(primary)

    async def sweep(self, references: References) -> int:
        """See `ContentStore`."""
        del references
        return 0

    async def create(self, owner: Owner, number: int | None = None) -> RemoteWriter:
        """See `ContentStore`."""
        return RemoteWriter(self._calls, await self._calls.create(owner, number))

    async def length(self, content: ContentId, claim: Claim | None = None) -> int:
        """See `ContentStore`."""
        return await self._calls.length(content, claim)

    async def copy(self, content: ContentId, owner: Owner, claim: Claim | None = None) -> ContentId:
        """See `ContentStore`."""
        return await self._calls.copy(content, owner, claim)

    async def read(
        self, content: ContentId, start: int, stop: int, claim: Claim | None = None
    ) -> AsyncGenerator[bytes, None]:
        """See `ContentStore`."""
        for at in range(start, stop, WINDOW_BYTES):
            yield await self._calls.read(content, at, min(at + WINDOW_BYTES, stop), claim)

    def keep(self, content: ContentId) -> None:
        """See `ContentStore`."""

    async def delete(self, contents: Collection[ContentId]) -> None:
        """See `ContentStore`."""
        await self._calls.delete(contents)

    async def drop(self, space: int) -> None:
        """See `ContentStore`."""
        await self._calls.drop(space)

    async def close(self) -> None:
        """See `ContentStore`."""


def content_procedures(store: ContentStore) -> Mapping[str, Procedure]:
    """Return what `RemoteContents` calls at the primary that has a store."""
    return _CALLS.procedures(ContentCalls(store))
