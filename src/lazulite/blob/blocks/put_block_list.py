"""Put Block List: make the named blocks a blob. Source: reference §36.2.

A list of one row is written by the commit that makes it the blob's. Rows of a longer one are written before, by commits
of their own; meanwhile the list is pending (`model.ledger`).
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial

from lazulite.blob.blobs.creation import Creation
from lazulite.blob.blocks.block_list_xml import read_block_list
from lazulite.blob.blocks.put_block import require_block_blob
from lazulite.blob.content.digests import PUT_BLOCK_LIST, take_in
from lazulite.blob.content.receiving import checked_headers, digests_of, whole_content_of
from lazulite.blob.model.blob import Blob, BlobType, ContentHeaders
from lazulite.blob.model.draft import Draft
from lazulite.blob.model.ledger import PENDING_DAYS
from lazulite.blob.operations.new_list import BlocksChangedError, NewList, list_row_values, make_list, stretches
from lazulite.blob.presence import online
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.request_headers import DEFAULT_TYPE, read_content_headers
from lazulite.blob.requests.response_headers import written
from lazulite.blob.storage.catalog import Container
from lazulite.blob.storage.uploads import day_of
from lazulite.engine.contract import EngineError
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response

_COMMIT_BYTES = 512 * 1024
"""A commit of rows of a list waits for one sync: so several rows share it."""
_TRIES_MAX = 10
"""How often a list is made while other requests change its blocks."""


async def put_block_list(call: Call) -> Response:
    """Make a blob of uncommitted blocks, and of blocks that it has. All other uncommitted blocks are discarded."""
    digests = digests_of(call, PUT_BLOCK_LIST)
    body = await whole_content_of(call, digests)
    await call.in_slices(take_in(digests, body))
    entries = await call.in_slices(read_block_list(body))
    creation = Creation(call, BlobType.BLOCK, _content_headers(call), await call.retention())
    writing = _Writing(call, creation)
    container = await call.container()
    for _ in range(_TRIES_MAX):
        await call.decide_early(container, writing.check)
        try:
            new = await make_list(call.context, (container.space, call.resource.blob), entries)
            await creation.prepare(container)
            blob = await writing.write(container, new)
        except BlocksChangedError:
            continue
        return Response(201, written(blob, *checked_headers(call, digests)))
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


def _put_rows(draft: Draft, rows: Mapping[str, bytes]) -> None:
    for row, value in rows.items():
        draft.put(row, value)


class _Writing:
    """The writing of a list, and of the blob that has it.

    Args:
        call: the request.
        creation: of the blob.
    """

    def __init__(self, call: Call, creation: Creation) -> None:
        self._call = call
        self._creation = creation

    def check(self, draft: Draft) -> Blob:
        """Return the blob without its blocks, if what is stored allows it.

        Raises:
            ServiceError: `InvalidBlobType`, 409, 412.
        """
        blob = self._creation.allow(draft)
        if draft.found is not None and not draft.found.deleted:
            require_block_blob(draft.found)
            online(draft.found)
            blob = replace(blob, created=draft.found.created)
        return blob

    async def write(self, container: Container, new: NewList) -> Blob:
        """Write a list, then the blob that has it; return the blob.

        Raises:
            ServiceError: as `check`. Nothing is left of the list.
            BlocksChangedError: other blocks would be chosen now. Likewise.
        """
        partition = container.space, self._call.resource.blob
        async with aclosing(list_row_values(self._call.context, partition, new)) as rows:
            if sum(1 for _ in stretches(new.blocks)) <= 1:
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
        await self._call.context.uploads.look_on(today + PENDING_DAYS + 1, (container.space, self._call.resource.blob))

        def begin(draft: Draft) -> None:
            draft.ledger = draft.ledger.begin_list(new.holding, today)

        await self._call.commit(container, begin)

    async def _finish(self, container: Container, new: NewList, rows: Mapping[str, bytes]) -> Blob:
        """Write the blob, and the rows of its list unless it is pending."""
        last: list[Blob] = []

        def finish(draft: Draft) -> None:
            blob = self.check(draft)
            is_written = bool(rows) or not new.blocks or new.holding in draft.ledger.pending
            if not is_written or not new.is_current(draft.ledger, draft.found):
                raise BlocksChangedError
            draft.ledger = draft.ledger.end_list(new.holding)
            _put_rows(draft, rows)
            number = new.number if new.blocks else 0
            blob = replace(blob, list=number, blocks=len(new.blocks), length=new.length)
            last[:] = [self._creation.put(draft, blob)]

        await self._call.commit(container, finish, *rows)
        return last[0]

    async def _give_up(self, container: Container, new: NewList) -> None:
        def give_up(draft: Draft) -> None:
            draft.ledger = draft.ledger.end_list(new.holding).discard(new.holding)

        await self._call.commit(container, give_up)
