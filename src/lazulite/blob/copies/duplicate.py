"""Copies of a blob's contents for another partition. The copies share storage where the content store can share it.

A content belongs to one partition, so each is copied (`ContentStore.copy`). A list is written while it is pending
(`model.ledger`). After a crash, the collector finds and deletes a list that was not committed.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
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
    """Copies of the contents of a source, for the blob that a request addresses.

    Args:
        call: the request.
        container: the container that the request addresses.
        source: the blob whose contents are copied.
    """

    call: Call
    container: Container
    source: Source
    number: int = 0
    """The number of the new list; 0: there is none."""
    _contents: list[ContentId] = field(default_factory=list)

    @property
    def _reference(self) -> str:
        """The ledger's name of the new list."""
        return f"x{self.number}"

    async def commit(self, finish: Callable[[Transaction, Blob], Blob]) -> Blob:
        """Copy the contents, commit the blob that refers to them, and return the blob.

        Args:
            finish: takes the transaction, and the source's blob with the copies; returns the blob that it writes.

        Raises:
            ServiceError, SpaceDroppedError: the commit was rejected. The copies are deleted. If the store fails, the
                collector deletes them later.
        """
        contents = self.call.context.contents
        try:
            blob = await self._copy_source()

            def decide(transaction: Transaction) -> Blob:
                if self.number:
                    if self._reference not in transaction.ledger.pending:
                        raise ServiceError("ServerBusy")
                    transaction.ledger = transaction.ledger.end_list(self._reference)
                return finish(transaction, blob)

            committed = await self.call.commit(self.container, decide)
        except (ServiceError, SpaceDroppedError):
            await self._give_up()
            raise
        for content in self._contents:
            contents.keep(content)
        return committed

    async def _copy_source(self) -> Blob:
        """Copy the contents of the source; return its blob with the copies."""
        blob = self.source.blob
        if not blob.list:
            content = None if blob.content is None else (await self._copy_contents([(blob.content, blob.length)]))[0]
            return blob._replace(content=content)
        self.number = new_number(self.call.context.random)
        await self._begin()
        rows = self._copy_segment_rows() if blob.type is BlobType.PAGE else self._copy_block_rows()
        async with aclosing(rows):
            async for row, value in rows:
                await self.call.commit(self.container, partial(Transaction.put, row=row, value=value), row)
        return blob._replace(list=self.number, epoch=0)

    async def _copy_block_rows(self) -> AsyncGenerator[tuple[str, bytes], None]:
        """Copy the blocks of a list; yield the rows of the new list."""
        blob, partition = self.source.blob, self.source.partition
        async with aclosing(self.call.context.partitions.slices(*partition, list_rows(blob.list))) as parts:
            async for part in parts:
                for value in part.values:
                    start, blocks = read_blocks(value)
                    if start >= blob.length and blob.length:
                        return
                    copied = await self._copy_blocks(blocks)
                    end = start + sum(block.length for block in blocks)
                    yield list_row(self.number, end), write_blocks(start, copied)

    async def _copy_blocks(self, blocks: Sequence[Block]) -> list[Block]:
        held = [(block.content, block.length) for block in blocks if block.content is not None]
        remaining = iter(await self._copy_contents(held))
        return [block if block.content is None else block._replace(content=next(remaining)) for block in blocks]

    async def _copy_segment_rows(self) -> AsyncGenerator[tuple[str, bytes], None]:
        """Copy the pages of the source's epoch; yield the rows of the new list."""
        blob = self.source.blob
        found = stored_segments(self.call.context.engine, self.source.partition, blob, 0, blob.length)
        async with aclosing(found) as stored:
            async for each in stored:
                segment = each.as_of(blob.epoch)
                if not segment.extents:
                    continue
                old = sorted(segment.contents())
                new = dict(zip(old, await self._copy_contents([(each, None) for each in old]), strict=True))
                extents = tuple(
                    extent._replace(epoch=0, content=None if extent.content is None else new[extent.content])
                    for extent in segment.extents
                )
                yield segment_row(self.number, each.base), Segment(0, extents, segment.inline).to_bytes()

    async def _copy_contents(self, held: Sequence[tuple[int, int | None]]) -> list[int]:
        """Copy contents of the source, given their numbers and known lengths; return the copies' numbers."""
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
            transaction.ledger = transaction.ledger.begin_list(self._reference, today)

        await self.call.commit(self.container, begin)

    async def _give_up(self) -> None:
        with suppress(EngineError):
            if self.number:
                name = self._reference

                def give_up(transaction: Transaction) -> None:
                    transaction.ledger = transaction.ledger.end_list(name).discard(name)

                await self.call.commit(self.container, give_up)
            await self.call.context.contents.delete(self._contents)
