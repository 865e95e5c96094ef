"""The bytes of a blob, as the content of a response."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing

from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.block import Block, read_blocks
from lazulite.blob.model.pages import SEGMENT_BYTES
from lazulite.blob.model.rows import list_row, list_rows
from lazulite.blob.requests.call import Context
from lazulite.blob.storage.readers import Partition
from lazulite.blob.storage.segments import stored_segments
from lazulite.engine.content.contract import Claim, ContentId
from lazulite.engine.contract import KeyRange
from lazulite.protocol.message import WINDOW_BYTES, Window, pieces

_ZEROS = bytes(WINDOW_BYTES)


async def read_bytes(
    context: Context, partition: Partition, blob: Blob, start: int, stop: int
) -> AsyncGenerator[Window, None]:
    """Yield bytes of a blob, snapshot or version in pieces of at most a window.

    Args:
        context: of the service.
        partition: where the blob is.
        blob: as it was read; its bytes must be held (`Readers`).
        start: the offset of the first byte.
        stop: the offset behind the last one.

    Raises:
        ContentMissingError: the blob was replaced by another process, which has deleted its bytes.
        ContentDamagedError: bytes are not what was written.
    """
    if blob.type is BlobType.PAGE:
        source = _pages(context, partition, blob, start, stop)
    elif blob.list:
        source = _list(context, partition, blob, start, stop)
    elif blob.content is not None:
        claim = Claim(partition[1], blob.length)
        source = context.contents.read(ContentId(partition[0], blob.content), start, stop, claim)
    else:
        for inline in pieces(blob.inline[start:stop]):
            yield inline
        return
    async with aclosing(source):
        async for piece in source:
            yield piece


async def _list(
    context: Context, partition: Partition, blob: Blob, start: int, stop: int
) -> AsyncGenerator[Window, None]:
    """Yield bytes of a blob of blocks: each row tells where its blocks begin."""
    space, name = partition
    ranges = [KeyRange((name, list_row(blob.list, start + 1)), (name, list_rows(blob.list)[:-1] + "0"))]
    async with aclosing(context.engine.scan(space, ranges)) as parts:
        async for part in parts:
            for value in part.values:
                at, blocks = read_blocks(value)
                for block in blocks:
                    if at >= stop:
                        return
                    if at + block.length > start:
                        async with aclosing(_block(context, partition, block, start - at, stop - at)) as found:
                            async for piece in found:
                                yield piece
                    at += block.length


async def _pages(
    context: Context, partition: Partition, blob: Blob, start: int, stop: int
) -> AsyncGenerator[Window, None]:
    """Yield bytes of a page blob: zeros where none were written."""
    at = start
    async with aclosing(stored_segments(context.engine, partition, blob, start, stop)) as stored:
        async for found in stored:
            for zeros in _zeros(found.base - at):
                yield zeros
            first, last = max(start - found.base, 0), min(stop - found.base, SEGMENT_BYTES)
            for piece in found.as_of(blob.epoch).pieces(first, last):
                if piece.inline is not None:
                    yield piece.inline
                elif piece.content is None:
                    for zeros in _zeros(piece.length):
                        yield zeros
                else:
                    content, claim = ContentId(partition[0], piece.content), Claim(partition[1])
                    reading = context.contents.read(content, piece.at, piece.at + piece.length, claim)
                    async with aclosing(reading) as chunks:
                        async for chunk in chunks:
                            yield chunk
            at = found.base + last
    for zeros in _zeros(stop - at):
        yield zeros


def _zeros(length: int) -> Iterator[bytes]:
    while length > 0:
        yield _ZEROS[:length]
        length -= len(_ZEROS)


async def _block(
    context: Context, partition: Partition, block: Block, start: int, stop: int
) -> AsyncGenerator[Window, None]:
    start, stop = max(start, 0), min(stop, block.length)
    if block.content is None:
        yield block.inline[start:stop]
        return
    space, name = partition
    content, claim = ContentId(space, block.content), Claim(name, block.length)
    async with aclosing(context.contents.read(content, start, stop, claim)) as found:
        async for piece in found:
            yield piece


class BlobContent:
    """Bytes of a blob as `ResponseContent`. The bytes are held from the beginning until `aclose`.

    Args:
        context: of the service.
        partition: where the blob is.
        blob: as it was read, in the same step of the event loop.
        start: the offset of the first byte.
        stop: the offset behind the last one.
    """

    def __init__(self, context: Context, partition: Partition, blob: Blob, start: int, stop: int) -> None:
        self._context = context
        self._partition = partition
        self._blob = blob
        self._start = start
        self._stop = stop
        context.garbage.readers.begin(partition)

    @property
    def length(self) -> int:
        """See `ResponseContent`."""
        return self._stop - self._start

    @property
    def held_bytes(self) -> int:
        """See `ResponseContent`."""
        return 0

    def chunks(self) -> AsyncIterator[Window]:
        """See `ResponseContent`."""
        return read_bytes(self._context, self._partition, self._blob, self._start, self._stop)

    async def aclose(self) -> None:
        """See `ResponseContent`."""
        self._context.garbage.readers.end(self._partition)
