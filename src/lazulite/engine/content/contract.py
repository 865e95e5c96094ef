"""The contract of content stores: large byte strings that are written once, and named by rows.

Every content store must guarantee:

- Sealed content is durable, and never changes. Its id is never given to other content.
- Content that was neither kept nor deleted when its process ended is *undecided*. It is deleted unless a row of its
  owner refers to it. Content that was kept is deleted only by `delete` and `drop`.
- A read yields the bytes that were written, or raises `ContentDamagedError`. It may have yielded a part before. So it
  does where the bytes of another content lie under a content's name, as far as owner and length tell.
- `drop` empties a space of the engine forever, whatever its size.

The order of a write is therefore: seal, commit the row that refers to the content, `keep`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from typing import NamedTuple, Protocol

from lazulite.engine.contract import EngineError

WINDOW_BYTES = 256 * 1024
"""Contents are checked, written and read in windows of this size."""


class Owner(NamedTuple):
    """The partition whose rows may refer to a content."""

    space: int
    partition: str


class ContentId(NamedTuple):
    """The name of a content; its number is unique in its space."""

    space: int
    number: int


class Claim(NamedTuple):
    """What a row says of a content to which it refers. A content that differs belongs to another row."""

    partition: str
    """The partition of the row."""
    length: int | None = None
    """The bytes of the content; None: the row does not tell."""


References = Callable[[Owner], Awaitable[Collection[ContentId]]]
"""Returns the contents to which the rows of an owner refer, as of one snapshot."""


class ContentDamagedError(EngineError):
    """Bytes of a content are not what was written, or are missing."""


class ContentUnsealedError(ContentDamagedError):
    """A content has no end: it was never sealed, or its end is lost."""


class ContentMissingError(EngineError):
    """There is no such content: it was deleted, or a row refers to nothing."""


class ContentWriter(Protocol):
    """One content while it is written. It must end by `seal` or `discard`."""

    @property
    def length(self) -> int:
        """The bytes that were written so far."""
        ...

    async def write(self, chunk: bytes) -> None:
        """Append bytes. It returns while at most two windows wait to be written.

        Raises:
            EngineUnavailableError: they cannot be written. Only `discard` is possible now.
        """
        ...

    async def seal(self) -> ContentId:
        """Return the content's name, once the content is durable.

        Raises:
            EngineUnavailableError: it cannot be made durable. Only `discard` is possible now.
            SpaceDroppedError: its space was dropped.
        """
        ...

    async def discard(self) -> None:
        """Delete what was written; does nothing after `seal`. It does not fail: what is left has no row."""
        ...


class ContentStore(Protocol):
    """The contents of all spaces."""

    async def sweep(self, references: References) -> int:
        """Delete the undecided contents of earlier processes to which no row refers; return their number.

        Other calls may run meanwhile. A failure leaves them to the next process.
        """
        ...

    async def create(self, owner: Owner, number: int | None = None) -> ContentWriter:
        """Begin a content.

        Args:
            owner: of it.
            number: of a content of another store, of which this one becomes the copy. What was begun under that name
                is replaced, and nothing is undecided: the copy as a whole is repeated after a crash. None: a new one.

        Raises:
            EngineUnavailableError: it cannot be begun.
            SpaceDroppedError: its space was dropped.
        """
        ...

    async def length(self, content: ContentId, claim: Claim | None = None) -> int:
        """Return the bytes of a content.

        Raises:
            ContentMissingError: there is no such content.
            ContentDamagedError: it is damaged, was never sealed, or is not the one of the claim.
            EngineUnavailableError: it cannot be read now.
        """
        ...

    async def copy(self, content: ContentId, owner: Owner, claim: Claim | None = None) -> ContentId:
        """Make a content of the same bytes for another owner; return its name, once it is durable.

        It is as if it was just written and sealed: the caller commits its row, then calls `keep`.

        Raises:
            ContentMissingError: there is no such content.
            ContentDamagedError: it is damaged, or not the one of the claim. A store that shares the bytes of both does
                not look at them.
            EngineUnavailableError: it cannot be copied.
            SpaceDroppedError: the space of the new owner was dropped.
        """
        ...

    def read(
        self, content: ContentId, start: int, stop: int, claim: Claim | None = None
    ) -> AsyncGenerator[bytes | bytearray, None]:
        """Yield the bytes from `start` up to `stop` in pieces of at most a window. The caller closes the generator.

        A piece does not change any more.

        Raises:
            ContentMissingError: there is no such content.
            ContentDamagedError: it is damaged, shorter than `stop`, or not the one of the claim.
            EngineUnavailableError: it cannot be read now.
        """
        ...

    def keep(self, content: ContentId) -> None:
        """Note that a durable row refers to a content."""
        ...

    async def delete(self, contents: Collection[ContentId]) -> None:
        """Delete contents to which no row refers, durably; unknown ones are passed over. Reads that run may fail.

        Raises:
            EngineUnavailableError: some are left, or may come back.
        """
        ...

    async def drop(self, space: int) -> None:
        """Empty a space forever. The files may go in the background.

        Raises:
            EngineUnavailableError: nothing happened.
        """
        ...

    async def close(self) -> None:
        """End what runs. All writers must have ended."""
        ...
