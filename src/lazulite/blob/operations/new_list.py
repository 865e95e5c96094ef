"""A new list of blocks: which blocks it takes, and the rows in which it is written.

A list takes blocks of the current list and of the current upload only. Their bytes stay where they are, unless they are
in rows: those are copied. The blocks are found outside the commit, which therefore checks that nothing was changed on
which the choice depends (`NewList.is_current`).
"""

from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.blob.blocks.block_list_xml import Entry, Source
from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.block import Block, StoredBlock, read_heads, write_blocks
from lazulite.blob.model.ledger import Ledger, new_number, read_ledger
from lazulite.blob.model.rows import LEDGER, list_row, list_rows, upload_rows
from lazulite.blob.requests.call import Context
from lazulite.blob.storage.readers import Partition
from lazulite.engine.contract import UNKNOWN
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.service.time_slice import TimeSlice

ROW_BLOCKS_MAX = 1000
"""Blocks of one row of a list."""
ROW_INLINE_BYTES_MAX = 256 * 1024
"""A row of a list with so many bytes of blocks takes no more."""
_ENTRIES_OF_A_STEP = 500


class BlocksChangedError(Exception):
    """The blocks of a partition were changed while a list of them was made."""


class Taken(NamedTuple):
    """A block that a list takes."""

    block: StoredBlock
    row: str
    """The row that has it now."""


Known = Mapping[str, Taken]
"""Blocks by their ids."""


@dataclass(frozen=True, slots=True)
class NewList:
    """The blocks of a new list, and what they were chosen from."""

    number: int
    blocks: Sequence[Taken]
    replaced: int
    """The list of the present blob; 0: it has none."""
    ledger: Ledger
    sources: Collection[Source]
    """`UNCOMMITTED` and `COMMITTED`: where the blocks are; `LATEST`: one was committed as there was no uncommitted."""

    @property
    def holding(self) -> str:
        """The name of the list in the ledger."""
        return f"x{self.number}"

    @property
    def length(self) -> int:
        """The bytes of its blocks."""
        return sum(taken.block.length for taken in self.blocks)

    def is_current(self, ledger: Ledger, blob: Blob | None) -> bool:
        """Tell whether the same blocks would be chosen now."""
        before, now = self.ledger.uncommitted, ledger.uncommitted
        if Source.COMMITTED in self.sources and list_of(blob) != self.replaced:
            return False
        if Source.LATEST in self.sources and (ledger.upload, now.blocks) != (self.ledger.upload, before.blocks):
            return False
        if Source.UNCOMMITTED in self.sources:
            return (ledger.upload, now.replaced) == (self.ledger.upload, before.replaced)
        return True


def list_of(blob: Blob | None) -> int:
    """Return the number of a blob's list of blocks with ids; 0: it has none."""
    return 0 if blob is None or blob.deleted or blob.type is not BlobType.BLOCK else blob.list


async def make_list(context: Context, partition: Partition, entries: Sequence[Entry]) -> NewList:
    """Choose the blocks that a request names.

    Raises:
        ServiceError: `InvalidBlockList`, there is no such block.
        BlocksChangedError: they were changed meanwhile.
    """
    ledger, number = await _state(context, partition)
    wanted = {id_ for source, id_ in entries if source is not Source.COMMITTED}
    uncommitted = await _find(context, partition, upload_rows(ledger.upload), wanted) if ledger.upload else {}
    wanted = {id_ for source, id_ in entries if source is not Source.UNCOMMITTED}
    committed = await _find(context, partition, list_rows(number), wanted) if number else {}
    time_slice = TimeSlice(context.limits.slice_seconds, context.monotonic)
    chosen = await time_slice.run(_choose(entries, uncommitted, committed))
    if chosen is None:
        after, list_ = await _state(context, partition)
        if (after.upload, after.uncommitted, list_) != (ledger.upload, ledger.uncommitted, number):
            raise BlocksChangedError
        raise ServiceError("InvalidBlockList")
    blocks, sources = chosen
    return NewList(new_number(context.random), blocks, number, ledger, sources)


async def _state(context: Context, partition: Partition) -> tuple[Ledger, int]:
    """Return the ledger, and the number of the blob's list."""
    ledger = read_ledger(await context.engine.get(*partition, LEDGER))
    return ledger, list_of(await context.partitions.get(*partition))


async def _find(context: Context, partition: Partition, prefix: str, wanted: Collection[str]) -> Known:
    """Return the blocks of some ids in the rows whose keys begin with a prefix; of those of one id, the first."""
    found: dict[str, Taken] = {}
    async with aclosing(context.partitions.slices(*partition, prefix)) as parts:
        async for part in parts:
            for index, value in enumerate(part.values):
                for block in read_heads(value)[1]:
                    if block.id in wanted and block.id not in found:
                        found[block.id] = Taken(block, part.key(index)[1])
    return found


def _choose(
    entries: Sequence[Entry], uncommitted: Known, committed: Known
) -> Steps[tuple[Sequence[Taken], Collection[Source]] | None]:
    """Return the blocks that entries name, and their sources; None if there is no such block."""
    blocks: list[Taken] = []
    sources: set[Source] = set()
    for number, (source, id_) in enumerate(entries):
        taken = None if source is Source.COMMITTED else uncommitted.get(id_)
        if taken is not None:
            sources.add(Source.UNCOMMITTED)
        else:
            taken = None if source is Source.UNCOMMITTED else committed.get(id_)
            if taken is None:
                return None
            sources.update((Source.COMMITTED, source))
        blocks.append(taken)
        if number % _ENTRIES_OF_A_STEP == 0:
            yield
    return blocks, sources


def stretches(blocks: Sequence[Taken]) -> Iterator[Sequence[Taken]]:
    """Yield the blocks of each row of a list."""
    first, inline = 0, 0
    for index, (block, _) in enumerate(blocks):
        if index - first == ROW_BLOCKS_MAX or inline >= ROW_INLINE_BYTES_MAX:
            yield blocks[first:index]
            first, inline = index, 0
        if block.content is None:
            inline += block.length
    if blocks:
        yield blocks[first:]


async def list_row_values(
    context: Context, partition: Partition, new: NewList
) -> AsyncGenerator[tuple[str, bytes], None]:
    """Yield the rows of a list.

    Raises:
        BlocksChangedError: a block is not where it was.
    """
    bytes_ = _InlineBytes(context, partition)
    start = 0
    for stretch in stretches(new.blocks):
        blocks = [
            Block(block.id, block.length, block.content, b"" if block.content is not None else await bytes_.of(taken))
            for taken in stretch
            for block in (taken.block,)
        ]
        end = start + sum(block.length for block in blocks)
        yield list_row(new.number, end), write_blocks(start, blocks)
        start = end


class _InlineBytes:
    """Reads the bytes of blocks that are in rows. It keeps one row, which may have the next block, too.

    Args:
        context: of the service.
        partition: of the blob.
    """

    def __init__(self, context: Context, partition: Partition) -> None:
        self._engine = context.engine
        self._partition = partition
        self._time_slice = TimeSlice(context.limits.slice_seconds, context.monotonic)
        self._row, self._value = "", b""

    async def of(self, taken: Taken) -> bytes:
        """Return the bytes of a block. Raises `BlocksChangedError`."""
        await self._time_slice.checkpoint()
        if taken.row != self._row:
            value = self._engine.get_now(*self._partition, taken.row)
            if value is UNKNOWN:
                value = await self._engine.get(*self._partition, taken.row)
            if value is None:
                raise BlocksChangedError
            self._row, self._value = taken.row, value
        return self._value[taken.block.at : taken.block.at + taken.block.length]
