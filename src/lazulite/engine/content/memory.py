"""Contents in memory, for a store in memory; also the model of the other stores."""

from collections.abc import AsyncGenerator, Collection
from typing import NamedTuple

from lazulite.engine.content.contract import (
    WINDOW_BYTES,
    Claim,
    ContentDamagedError,
    ContentId,
    ContentMissingError,
    Owner,
    References,
)
from lazulite.engine.contract import SpaceDroppedError


class MemoryWriter:
    """Implements `ContentWriter`."""

    def __init__(self, contents: "ContentMemory", owner: Owner, number: int | None) -> None:
        self.length = 0
        self._number = number
        self._contents = contents
        self._owner = owner
        self._chunks: list[bytes] = []

    async def write(self, chunk: bytes) -> None:
        """See `ContentWriter`."""
        self._chunks.append(chunk)
        self.length += len(chunk)

    async def seal(self) -> ContentId:
        """See `ContentWriter`."""
        return self._contents.add(self._owner, b"".join(self._chunks), self._number)

    async def discard(self) -> None:
        """See `ContentWriter`."""
        self._chunks.clear()


class _Held(NamedTuple):
    """A content, and the partition of the rows that may refer to it."""

    partition: str
    data: bytes


class ContentMemory:
    """Implements `ContentStore`. Its process ends with its contents, so none is ever undecided."""

    def __init__(self) -> None:
        self._contents: dict[ContentId, _Held] = {}
        self._dropped: set[int] = set()
        self._last = 0

    def add(self, owner: Owner, data: bytes, number: int | None = None) -> ContentId:
        """Store a content under a number, or a new one.

        Raises:
            SpaceDroppedError: its space was dropped.
        """
        self._check_not_dropped(owner.space)
        content = ContentId(owner.space, self._last + 1 if number is None else number)
        self._last = max(self._last, content.number)
        self._contents[content] = _Held(owner.partition, data)
        return content

    async def sweep(self, references: References) -> int:
        """See `ContentStore`."""
        del references
        return 0

    async def create(self, owner: Owner, number: int | None = None) -> MemoryWriter:
        """See `ContentStore`."""
        self._check_not_dropped(owner.space)
        return MemoryWriter(self, owner, number)

    async def length(self, content: ContentId, claim: Claim | None = None) -> int:
        """See `ContentStore`."""
        return len(self._data(content, claim))

    async def copy(self, content: ContentId, owner: Owner, claim: Claim | None = None) -> ContentId:
        """See `ContentStore`."""
        self._check_not_dropped(owner.space)
        return self.add(owner, self._data(content, claim))

    async def read(
        self, content: ContentId, start: int, stop: int, claim: Claim | None = None
    ) -> AsyncGenerator[bytes, None]:
        """See `ContentStore`."""
        if start >= stop:
            return
        data = self._data(content, claim)
        if stop > len(data):
            raise ContentDamagedError("a content is shorter than its row says")
        for at in range(start, stop, WINDOW_BYTES):
            yield data[at : min(at + WINDOW_BYTES, stop)]

    def keep(self, content: ContentId) -> None:
        """See `ContentStore`."""

    async def delete(self, contents: Collection[ContentId]) -> None:
        """See `ContentStore`."""
        for content in contents:
            self._contents.pop(content, None)

    async def drop(self, space: int) -> None:
        """See `ContentStore`."""
        self._dropped.add(space)
        for content in [content for content in self._contents if content.space == space]:
            del self._contents[content]

    async def close(self) -> None:
        """See `ContentStore`."""
        self._contents.clear()

    def _data(self, content: ContentId, claim: Claim | None) -> bytes:
        held = self._contents.get(content)
        if held is None:
            raise ContentMissingError("there is no such content")
        if claim is not None and (held.partition != claim.partition or claim.length not in (None, len(held.data))):
            raise ContentDamagedError("the content is that of another row")
        return held.data

    def _check_not_dropped(self, space: int) -> None:
        if space in self._dropped:
            raise SpaceDroppedError("the space of the content was dropped")
