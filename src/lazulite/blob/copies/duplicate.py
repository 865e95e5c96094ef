"""The bytes of a blob for another partition: as contents of its own, which share what the store can share.

A content belongs to one partition, so each is copied (`ContentStore.copy`). A list is written while it is pending
(`model.ledger`): a crash leaves nothing that is not found again.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from lazulite.blob.content.sources import Source
from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.block import Block, read_blocks, write_blocks
from lazulite.blob.model.ledger import PENDING_DAYS, new_number
from lazulite.blob.model.pages import Segment, segment_row
from lazulite.blob.model.rows import list_row, list_rows
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.storage.catalog import Container
from lazulite.blob.storage.segments import stored_segments
from lazulite.blob.storage.uploads import day_of
from lazulite.engine.content.contract import Claim, ContentId, Owner
from lazulite.engine.contract import EngineError, SpaceDroppedError
from lazulite.protocol.errors import ServiceError

_COPIES_AT_ONCE = 32


@dataclass(slots=True)
class Duplicate:
    """The bytes of a source, for the blob that a request addresses.

    Args:
        call: the request.
        container: that it addresses.
        source: whose bytes they are.
    """

    call: Call
    container: Container
    source: Source
    number: int = 0
    """The number of the new list; 0: there is none."""
    _contents: list[ContentId] = field(default_factory=list)

    async def commit(self, finish: Callable[[Transaction, Blob], Blob]) -> Blob:
        """Make the bytes, then commit the blob that has them, and return it.

        Args:
            finish: takes the transaction, and the source's blob with the new bytes; returns the blob that it writes.

        Raises:
            ServiceError, SpaceDroppedError: the commit was rejected. Nothing is left of the bytes.
        """
        contents = self.call.context.contents
        try:
            blob = await self._made()

            def decide(transaction: Transaction) -> Blob:
                if self.number:
                    if f"x{self.number}" not in transaction.ledger.pending:
                        raise ServiceError("ServerBusy")
                    transaction.ledger = transaction.ledger.end_list(f"x{self.number}")
                return finish(transaction, blob)

            committed = await self.call.commit(self.container, decide)
        except (ServiceError, SpaceDroppedError):
            await self._give_up()
            raise
        for content in self._contents:
            contents.keep(content)
        return committed

    async def _made(self) -> Blob:
        """Return the source's blob with the bytes that were made."""
        blob = self.source.blob
        if not blob.list:
            content = None if blob.content is None else (await self._copied([(blob.content, blob.length)]))[0]
            return replace(blob, content=content)
        self.number = new_number(self.call.context.random)
        await self._begin()
        rows = self._segments() if blob.type is BlobType.PAGE else self._stretches()
        async with aclosing(rows):
            async for row, value in rows:
                await self.call.commit(self.container, partial(Transaction.put, row=row, value=value), row)
        return replace(blob, list=self.number, epoch=0)

    async def _stretches(self) -> AsyncGenerator[tuple[str, bytes], None]:
        """Yield the rows of a list of blocks."""
        blob, space_name = self.source.blob, self.source.partition
        async with aclosing(self.call.context.partitions.slices(*space_name, list_rows(blob.list))) as parts:
            async for part in parts:
                for value in part.values:
                    start, blocks = read_blocks(value)
                    if start >= blob.length and blob.length:
                        return
                    copied = await self._copied_blocks(blocks)
                    end = start + sum(block.length for block in blocks)
                    yield list_row(self.number, end), write_blocks(start, copied)

    async def _copied_blocks(self, blocks: Sequence[Block]) -> list[Block]:
        held = [(block.content, block.length) for block in blocks if block.content is not None]
        remaining = iter(await self._copied(held))
        return [block if block.content is None else block._replace(content=next(remaining)) for block in blocks]

    async def _segments(self) -> AsyncGenerator[tuple[str, bytes], None]:
        """Yield the rows of pages, as they were in the source's epoch."""
        blob = self.source.blob
        found = stored_segments(self.call.context.engine, self.source.partition, blob, 0, blob.length)
        async with aclosing(found) as stored:
            async for each in stored:
                segment = each.as_of(blob.epoch)
                if not segment.extents:
                    continue
                old = sorted(segment.contents())
                new = dict(zip(old, await self._copied([(each, None) for each in old]), strict=True))
                extents = tuple(
                    extent._replace(epoch=0, content=None if extent.content is None else new[extent.content])
                    for extent in segment.extents
                )
                yield segment_row(self.number, each.base), Segment(0, extents, segment.inline).to_bytes()

    async def _copied(self, held: Sequence[tuple[int, int | None]]) -> list[int]:
        """Return the numbers of copies of contents of the source, given their numbers and what is known of lengths."""
        (space, name), owner = self.source.partition, Owner(self.container.space, self.call.resource.blob)
        contents = self.call.context.contents
        made: list[int] = []
        for start in range(0, len(held), _COPIES_AT_ONCE):
            some = held[start : start + _COPIES_AT_ONCE]
            copies: list[Awaitable[ContentId]] = [
                contents.copy(ContentId(space, number), owner, Claim(name, length)) for number, length in some
            ]
            found = await asyncio.gather(*copies)
            self._contents += found
            made += [content.number for content in found]
        return made

    async def _begin(self) -> None:
        context = self.call.context
        today = day_of(context.clock())
        await context.uploads.schedule(today + PENDING_DAYS + 1, (self.container.space, self.call.resource.blob))

        def begin(transaction: Transaction) -> None:
            transaction.ledger = transaction.ledger.begin_list(f"x{self.number}", today)

        await self.call.commit(self.container, begin)

    async def _give_up(self) -> None:
        with suppress(EngineError):
            if self.number:
                name = f"x{self.number}"

                def give_up(transaction: Transaction) -> None:
                    transaction.ledger = transaction.ledger.end_list(name).discard(name)

                await self.call.commit(self.container, give_up)
            await self.call.context.contents.delete(self._contents)
