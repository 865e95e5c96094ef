"""Put Block List: make the named blocks a blob. Source: reference §36.2.

A list takes blocks of the current list and of the current upload only. Their bytes stay where they are, unless they are
in rows: those are copied. The blocks are found outside the commit, which therefore checks that nothing was changed on
which the choice depends (`NewList.is_current`).

A list of one row is written by the commit that makes it the blob's. Rows of a longer one are written before, by commits
of their own; meanwhile the list is pending (`model.ledger`).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from lazulite.blob.blobs.put_blob import NewBlob
from lazulite.blob.blocks.block_list_xml import Entry, Source, read_block_list
from lazulite.blob.blocks.put_block import require_block_blob
from lazulite.blob.content.digests import PUT_BLOCK_LIST, take_in
from lazulite.blob.content.receiving import create_digests, make_checksum_headers, read_whole_content
from lazulite.blob.model.blob import Blob, BlobType, ContentHeaders, require_not_archived
from lazulite.blob.model.block import Block, StoredBlock, read_heads, write_blocks
from lazulite.blob.model.ledger import PENDING_DAYS, Ledger, new_number, read_ledger
from lazulite.blob.model.rows import LEDGER, list_row, list_rows, upload_rows
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call, Context
from lazulite.blob.requests.headers import DEFAULT_TYPE, read_content_headers, written
from lazulite.blob.storage.catalog import Container
from lazulite.blob.storage.readers import Partition
from lazulite.blob.storage.uploads import day_of
from lazulite.engine.contract import UNKNOWN, EngineError
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.protocol.steps import Steps
from lazulite.service.time_slice import TimeSlice

_COMMIT_BYTES = 512 * 1024
"""A commit of rows of a list waits for one sync: so several rows share it."""
_TRIES_MAX = 10
"""How often a list is made while other requests change its blocks."""
ROW_BLOCKS_MAX = 1000
"""Blocks of one row of a list."""
ROW_INLINE_BYTES_MAX = 256 * 1024
"""A row of a list with so many bytes of blocks takes no more."""
_ENTRIES_OF_A_STEP = 500


class BlocksChangedError(Exception):
    """The blocks of a partition were changed while a list of them was made."""


class SelectedBlock(NamedTuple):
    """A block that a list takes."""

    block: StoredBlock
    row: str
    """The row that has it now."""


Known = Mapping[str, SelectedBlock]
"""Blocks by their ids."""


@dataclass(frozen=True, slots=True)
class NewList:
    """The blocks of a new list, and what they were chosen from."""

    number: int
    blocks: Sequence[SelectedBlock]
    replaced: int
    """The list of the present blob; 0: it has none."""
    ledger: Ledger
    sources: Collection[Source]
    """`UNCOMMITTED` and `COMMITTED`: where the blocks are; `LATEST`: one was committed as there was no uncommitted."""

    @property
    def reference(self) -> str:
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


async def put_block_list(call: Call) -> Response:
    """Make a blob of uncommitted blocks, and of blocks that it has. All other uncommitted blocks are discarded."""
    digests = create_digests(call, PUT_BLOCK_LIST)
    body = await read_whole_content(call, digests)
    await call.in_slices(take_in(digests, body))
    entries = await call.in_slices(read_block_list(body))
    new_blob = NewBlob(call, BlobType.BLOCK, _content_headers(call), await call.retention())
    writing = _Writing(call, new_blob)
    container = await call.container()
    for _ in range(_TRIES_MAX):
        await call.decide_early(container, writing.check)
        try:
            new = await make_list(call.context, (container.space, call.resource.blob), entries)
            await new_blob.prepare(container)
            blob = await writing.write(container, new)
        except BlocksChangedError:
            continue
        return Response(201, written(blob, *make_checksum_headers(call, digests)))
    raise ServiceError("ServerBusy")


def _content_headers(call: Call) -> ContentHeaders:
    """Return the headers to be stored: the usual ones tell of the list."""
    headers = read_content_headers(call.request.headers, stored_only=True)
    return headers if headers.type else headers._replace(type=DEFAULT_TYPE)


async def _several(rows: AsyncIterator[tuple[str, bytes]]) -> AsyncIterator[Mapping[str, bytes]]:
    """Yield rows as one commit takes them: with so many bytes at least, unless they are the last."""
    several: dict[str, bytes] = {}
    async for row, value in rows:
        several[row] = value
        if sum(map(len, several.values())) >= _COMMIT_BYTES:
            yield several
            several = {}
    if several:
        yield several


def _put_rows(transaction: Transaction, rows: Mapping[str, bytes]) -> None:
    for row, value in rows.items():
        transaction.put(row, value)


class _Writing:
    """The writing of a list, and of the blob that has it.

    Args:
        call: the request.
        new_blob: of the blob.
    """

    def __init__(self, call: Call, new_blob: NewBlob) -> None:
        self._call = call
        self._new_blob = new_blob

    def check(self, transaction: Transaction) -> Blob:
        """Return the blob without its blocks, if what is stored allows it.

        Raises:
            ServiceError: `InvalidBlobType`, 409, 412.
        """
        blob = self._new_blob.allow(transaction)
        if transaction.found is not None and not transaction.found.deleted:
            require_block_blob(transaction.found)
            require_not_archived(transaction.found)
            blob = blob._replace(created=transaction.found.created)
        return blob

    async def write(self, container: Container, new: NewList) -> Blob:
        """Write a list, then the blob that has it; return the blob.

        Raises:
            ServiceError: as `check`. Nothing is left of the list.
            BlocksChangedError: other blocks would be chosen now. Likewise.
        """
        partition = container.space, self._call.resource.blob
        async with aclosing(list_row_values(self._call.context, partition, new)) as rows:
            if sum(1 for _ in block_ranges(new.blocks)) <= 1:
                return await self._finish(container, new, dict([row async for row in rows]))
            await self._begin(container, new)
            try:
                async for several in _several(rows):
                    await self._call.commit(container, partial(_put_rows, rows=several), *several)
                return await self._finish(container, new, {})
            except (ServiceError, BlocksChangedError):
                with suppress(EngineError):
                    await self._give_up(container, new)
                raise

    async def _begin(self, container: Container, new: NewList) -> None:
        today = day_of(self._call.context.clock())
        await self._call.context.uploads.schedule(today + PENDING_DAYS + 1, (container.space, self._call.resource.blob))

        def begin(transaction: Transaction) -> None:
            transaction.ledger = transaction.ledger.begin_list(new.reference, today)

        await self._call.commit(container, begin)

    async def _finish(self, container: Container, new: NewList, rows: Mapping[str, bytes]) -> Blob:
        """Write the blob, and the rows of its list unless it is pending."""

        def finish(transaction: Transaction) -> Blob:
            blob = self.check(transaction)
            is_written = bool(rows) or not new.blocks or new.reference in transaction.ledger.pending
            if not is_written or not new.is_current(transaction.ledger, transaction.found):
                raise BlocksChangedError
            transaction.ledger = transaction.ledger.end_list(new.reference)
            _put_rows(transaction, rows)
            number = new.number if new.blocks else 0
            blob = blob._replace(list=number, blocks=len(new.blocks), length=new.length)
            return self._new_blob.put(transaction, blob)

        return await self._call.commit(container, finish, *rows)

    async def _give_up(self, container: Container, new: NewList) -> None:
        def give_up(transaction: Transaction) -> None:
            transaction.ledger = transaction.ledger.end_list(new.reference).discard(new.reference)

        await self._call.commit(container, give_up)


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
    found: dict[str, SelectedBlock] = {}
    async with aclosing(context.partitions.slices(*partition, prefix)) as parts:
        async for part in parts:
            for index, value in enumerate(part.values):
                for block in read_heads(value)[1]:
                    if block.id in wanted and block.id not in found:
                        found[block.id] = SelectedBlock(block, part.key(index)[1])
    return found


def _choose(
    entries: Sequence[Entry], uncommitted: Known, committed: Known
) -> Steps[tuple[Sequence[SelectedBlock], Collection[Source]] | None]:
    """Return the blocks that entries name, and their sources; None if there is no such block."""
    blocks: list[SelectedBlock] = []
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


def block_ranges(blocks: Sequence[SelectedBlock]) -> Iterator[Sequence[SelectedBlock]]:
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
    for block_range in block_ranges(new.blocks):
        blocks = [
            Block(block.id, block.length, block.content, b"" if block.content is not None else await bytes_.of(taken))
            for taken in block_range
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

    async def of(self, taken: SelectedBlock) -> bytes:
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
