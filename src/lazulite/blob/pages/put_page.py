"""Put Page: write pages of a page blob, or clear them; resize it, number it. Source: reference §38."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

from lazulite.blob.blobs.properties import Changed, change_blob
from lazulite.blob.blobs.put_blob import check_length
from lazulite.blob.content.digests import CLEAR_PAGES, PUT_PAGE, take_in
from lazulite.blob.content.receiving import create_digests, make_checksum_headers, open_content
from lazulite.blob.limits import PAGE_BLOB_BYTES_MAX, PUT_PAGE_BYTES_MAX
from lazulite.blob.model.blob import INLINE_BYTES_MAX, Blob, BlobType
from lazulite.blob.model.byte_range import PAGE_BYTES, require_page_range
from lazulite.blob.model.pages import INLINE_BYTES_MAX as SEGMENT_INLINE_BYTES_MAX
from lazulite.blob.model.pages import SEGMENT_BYTES, Segment, changed_rows, read_segment, segment_row, segments_of
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import (
    has_content_headers,
    read_content_headers,
    read_number,
    require_header,
    version_of,
    written,
)
from lazulite.blob.storage.catalog import Container
from lazulite.blob.storage.readers import Partition
from lazulite.blob.storage.segments import stored_segments
from lazulite.engine.content.contract import ContentId, Owner
from lazulite.engine.contract import SpaceDroppedError
from lazulite.protocol.errors import ServiceError, invalid_header, missing_header
from lazulite.protocol.message import Response, pieces

_WRITE = "x-ms-page-write"
_SEQUENCE_TESTS = {
    "x-ms-if-sequence-number-le": int.__le__,
    "x-ms-if-sequence-number-lt": int.__lt__,
    "x-ms-if-sequence-number-eq": int.__eq__,
}
LENGTH, SEQUENCE, ACTION = "x-ms-blob-content-length", "x-ms-blob-sequence-number", "x-ms-sequence-number-action"
_SEQUENCE_MAX = 2**63 - 1
_SEGMENTS_OF_COMMIT = 5000
"""A longer range is cleared by several commits."""
_SEGMENTS_NAMED_MAX = 64
"""A commit that clears so many segments names the rows of all. Of more, each one that has a row is looked up before."""


class Part(NamedTuple):
    """What of a write belongs to one segment."""

    base: int
    """The offset of the segment."""
    start: int
    """In the segment."""
    stop: int
    data: bytes = b""
    """What is to be in the row."""
    content: ContentId | None = None
    """What has the bytes instead; neither: the part is cleared."""
    full: bytes = b""
    """The bytes of the row, if there are so many that they are moved to a content before the write."""
    moved: ContentId | None = None
    """That content."""

    @property
    def stored(self) -> list[ContentId]:
        """The contents that the write brings."""
        return [content for content in (self.content, self.moved) if content is not None]

    def apply(self, segment: Segment, epoch: int) -> Segment:
        """Return a segment after the write.

        Raises:
            _SegmentChangedError: the row has other bytes than were moved.
        """
        if self.moved is not None:
            if segment.inline != self.full:
                raise _SegmentChangedError
            segment = segment.moved(self.moved.number)
        if self.content is not None:
            return segment.write(self.start, self.stop, epoch, self.content.number)
        if self.data:
            return segment.write_inline(self.start, self.data, epoch)
        return segment.clear(self.start, self.stop, epoch)


class _Cleared(NamedTuple):
    """The parts of a range that is to be cleared."""

    parts: Sequence[Part] = ()
    modified: int | None = None
    """The Last-Modified of the blob whose segments were looked up; None: these are the parts of all segments."""

    def check(self, transaction: Transaction) -> None:
        """Raise `_SegmentChangedError` if the blob was changed after its segments were looked up."""
        if self.modified is not None and (transaction.found is None or transaction.found.modified != self.modified):
            raise _SegmentChangedError


class _SegmentChangedError(Exception):
    """Segments were changed after they were looked up, or while their bytes were moved to a content."""


async def put_page(call: Call) -> Response:
    """Write pages, or clear them."""
    headers = call.request.headers
    text = require_header(headers, _WRITE).lower()
    if text not in ("update", "clear"):
        raise invalid_header(_WRITE, text)
    check_length(call, 0 if text == "clear" else PUT_PAGE_BYTES_MAX)
    start, stop = require_page_range(headers)
    digests = create_digests(call, PUT_PAGE if text == "update" else CLEAR_PAGES)
    if text == "clear":
        digests.check()
        return await clear_pages(call, start, stop)
    data = b"".join([chunk async for chunk in open_content(call, digests)])
    await call.in_slices(take_in(digests, data))
    return Response(201, await write_pages(call, start, stop, data, make_checksum_headers(call, digests)))


async def write_pages(
    call: Call, start: int, stop: int, data: bytes, digests: Iterable[tuple[str, str]] = ()
) -> list[tuple[str, str]]:
    """Write bytes to a range of pages; return the headers of the response.

    Raises:
        ServiceError: the range has another length, or ends behind the blob; 412.
    """
    if stop - start != len(data):
        raise invalid_header("x-ms-range", call.request.headers.get("x-ms-range", ""))
    container = await call.container()
    await call.decide_early(container, lambda transaction: _allow(call, transaction, stop))
    partition = container.space, call.resource.blob
    contents = call.context.contents
    while True:
        parts = await _store(call, partition, start, stop, data)
        stored = [content for part in parts for content in part.stored]
        try:
            blob = await _commit(call, container, parts, stop)
        except _SegmentChangedError:
            await contents.delete(stored)
            continue
        except (ServiceError, SpaceDroppedError):
            await contents.delete(stored)
            raise
        for content in stored:
            contents.keep(content)
        break
    return written(blob, *digests, ("x-ms-blob-sequence-number", str(blob.sequence)))


async def clear_pages(call: Call, start: int, stop: int) -> Response:
    """Clear a range of pages."""
    container = await call.container()
    await call.decide_early(container, lambda transaction: _allow(call, transaction, stop))
    while True:
        found = await _look_up(call, container, start, stop)
        try:
            blob = await _commit(call, container, found.parts[:_SEGMENTS_OF_COMMIT], stop, found.check)
        except _SegmentChangedError:
            continue
        if len(found.parts) <= _SEGMENTS_OF_COMMIT:
            break
        start = found.parts[_SEGMENTS_OF_COMMIT].base
        call.preconditions = call.preconditions.without_conditions()
    return Response(201, [*version_of(blob), ("x-ms-blob-sequence-number", str(blob.sequence))])


async def set_page_properties(call: Call) -> Response:
    """Resize a page blob, or change its sequence number. Its content headers stay, unless the request has some."""
    headers = call.request.headers
    length = read_number(headers, LENGTH, 0, PAGE_BLOB_BYTES_MAX)
    if length is not None and length % PAGE_BYTES:
        raise invalid_header(LENGTH, headers[LENGTH])
    number = _sequence_change(headers)
    container = await call.container()
    while True:
        stored = await call.context.partitions.get(container.space, call.resource.blob)
        try:
            blob = await change_blob(call, *await _resizing(call, container, stored, length, number))
        except _SegmentChangedError:
            continue
        return Response(200, [*version_of(blob), ("x-ms-blob-sequence-number", str(blob.sequence))])


async def _resizing(
    call: Call, container: Container, stored: Blob | None, length: int | None, number: "_SequenceChange"
) -> tuple[Changed, *tuple[str, ...]]:
    """Return the change of a blob that was stored a moment ago, and the rows that it needs.

    The change raises `_SegmentChangedError` if the blob has another length than was stored, or pages that are not
    known of.
    """
    sent = call.request.headers
    content_headers = read_content_headers(sent, stored_only=True) if has_content_headers(sent) else None
    found = _Cleared()
    if stored is not None and length is not None and length < stored.length:
        found = await _look_up(call, container, length, stored.length)

    def change(blob: Blob, transaction: Transaction) -> Blob:
        if blob.type is not BlobType.PAGE:
            raise ServiceError("InvalidBlobType")
        if length is not None and (stored is None or stored.length != blob.length):
            raise _SegmentChangedError
        found.check(transaction)
        _apply(transaction, blob, found.parts)
        blob = blob._replace(sequence=number(blob.sequence), length=blob.length if length is None else length)
        return blob if content_headers is None else blob._replace(headers=content_headers, copy=None)

    return change, *_rows_of(stored, found.parts)


def _sequence_change(headers: Mapping[str, str]) -> "_SequenceChange":
    action = headers.get(ACTION, "").lower()
    number = read_number(headers, SEQUENCE)
    if action not in ("", "max", "update", "increment"):
        raise invalid_header(ACTION, action)
    if action in ("max", "update") and number is None:
        raise missing_header(SEQUENCE)
    if action == "increment" and number is not None:
        raise invalid_header(SEQUENCE, headers[SEQUENCE])
    return _SequenceChange(action, number or 0)


class _SequenceChange(NamedTuple):
    """What becomes of a sequence number."""

    action: str
    number: int

    def __call__(self, present: int) -> int:
        """Return the new sequence number.

        Raises:
            ServiceError: `SequenceNumberIncrementTooLarge`.
        """
        if self.action == "increment":
            if present == _SEQUENCE_MAX:
                raise ServiceError("SequenceNumberIncrementTooLarge")
            return present + 1
        if self.action == "max":
            return max(present, self.number)
        return self.number if self.action == "update" else present


async def _store(call: Call, partition: Partition, start: int, stop: int, data: bytes) -> list[Part]:
    """Return the parts of a write; store the bytes that are too many for a row."""
    blob = await call.context.partitions.get(*partition)
    parts: list[Part] = []
    for base, first, last in segments_of(start, stop):
        part = Part(base, first, last, data[base + first - start : base + last - start])
        number = 0 if blob is None else blob.list
        if len(part.data) > INLINE_BYTES_MAX:
            part = part._replace(content=await _store_part(call, partition, part.data))
        else:
            inline = read_segment(await call.context.engine.get(*partition, segment_row(number, base))).inline
            if len(part.data) + len(inline) > SEGMENT_INLINE_BYTES_MAX:
                part = part._replace(full=inline, moved=await _store_part(call, partition, inline))
        parts.append(part)
    return parts


async def _store_part(call: Call, partition: Partition, data: bytes) -> ContentId:
    writer = await call.context.contents.create(Owner(*partition))
    try:
        for piece in pieces(data):
            await writer.write(piece)
        return await writer.seal()
    except BaseException:
        await writer.discard()
        raise


async def _look_up(call: Call, container: Container, start: int, stop: int) -> _Cleared:
    """Return the parts of a range that is to be cleared: of all segments, or of each one that has pages."""
    partition = container.space, call.resource.blob
    if stop - start <= (_SEGMENTS_NAMED_MAX - 1) * SEGMENT_BYTES:
        return _Cleared([Part(*segment) for segment in segments_of(start, stop)])
    blob = await call.context.partitions.get(*partition)
    if blob is None or blob.type is not BlobType.PAGE:
        return _Cleared()
    bases: set[int] = set()
    async with aclosing(stored_segments(call.context.engine, partition, blob, start, stop)) as segments:
        async for segment in segments:
            if segment.now.extents:
                bases.add(segment.base)
    parts = [Part(base, max(start - base, 0), min(stop - base, SEGMENT_BYTES)) for base in sorted(bases)]
    return _Cleared(parts, blob.modified)


async def _commit(
    call: Call,
    container: Container,
    parts: Sequence[Part],
    stop: int,
    check: Callable[[Transaction], None] | None = None,
) -> Blob:
    def decide(transaction: Transaction) -> Blob:
        found = _allow(call, transaction, stop)
        if check is not None:
            check(transaction)
        changed = found._replace(modified=transaction.modified)
        _apply(transaction, found, parts)
        transaction.put_blob(changed)
        return changed

    stored = await call.context.partitions.get(container.space, call.resource.blob)
    return await call.commit(container, decide, *_rows_of(stored, parts))


def _rows_of(blob: Blob | None, parts: Sequence[Part]) -> list[str]:
    return [] if blob is None else [segment_row(blob.list, part.base) for part in parts]


def _apply(transaction: Transaction, blob: Blob, parts: Sequence[Part]) -> None:
    for part in parts:
        value = transaction.value(segment_row(blob.list, part.base))
        before = read_segment(value)
        after = part.apply(before, blob.epoch)
        if value is None and not after.extents:
            continue
        for number in before.released(after):
            transaction.ledger = transaction.ledger.release(f"c{number}")
        for row, changed in changed_rows(blob.list, part.base, value, after).items():
            transaction.put(row, changed)


def _allow(call: Call, transaction: Transaction, stop: int) -> Blob:
    """Return the blob that a request may write to, with its lease up to date.

    Raises:
        ServiceError: see the operation.
    """
    headers, found = call.request.headers, transaction.require_blob()
    if found.type is not BlobType.PAGE:
        raise ServiceError("InvalidBlobType")
    lease = call.preconditions.allow_write(found, transaction.present)
    for name, holds in _SEQUENCE_TESTS.items():
        number = read_number(headers, name)
        if number is not None and not holds(found.sequence, number):
            raise ServiceError("SequenceNumberConditionNotMet")
    if stop > found.length:
        raise ServiceError("InvalidPageRange")
    return found._replace(lease=lease)
