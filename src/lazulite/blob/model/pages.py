"""The pages of a page blob: which ranges were written, when, and where their bytes are.

A page blob of up to 8 TiB is divided into segments of 4 MiB, one row each, so that Put Page changes at most two rows.
A segment without a row has no page. A segment holds *extents*: ranges whose bytes are in one content, or in the row
itself. What no extent covers reads as zeros.

Snapshots share the rows. Their number so far is the blob's *epoch*: a snapshot has the epoch that the blob had, and the
blob goes on with the next one. A segment says since which epoch it is as it is. The first change in a later epoch keeps
the old segment in a row of its own, `history_row`, with the last epoch in which it was so.

A segment also keeps which of its pages were cleared after the first snapshot, as Get Page Ranges tells of pages
that were written and cleared between two snapshots.

Invariants: extents are sorted, neither empty nor overlapping, and end within their segment. Their bounds are multiples
of a page. `epoch` of an extent is that of its write, and at most `since` of its segment. A content belongs to one
segment. A change in epoch e of a segment since e takes away no extent of an earlier epoch that history lacks.
A cleared range touches no extent. The bytes of a row are exactly those of the extents without a content, so that what
follows them are the cleared ranges: earlier releases of Lazulite take these for unused bytes, and drop them.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import NamedTuple, Self

from lazulite.blob.model.rows import list_row, number

SEGMENT_BYTES = 4 * 1024 * 1024
INLINE_BYTES_MAX = 64 * 1024
"""Bytes that a segment may have in its row. With more of them, they are moved to a content (`Segment.moved`)."""

_VERSION = 1
_HEAD = Struct("<BII")
"""The format, `since`, the number of extents."""
_EXTENT = Struct("<IIIQI")
"""Start, stop, epoch, content + 1 or 0, at."""
_CLEARED = Struct("<III")
"""Start, stop, epoch."""
_STOP = attrgetter("stop")


class Extent(NamedTuple):
    """A range of a segment that was written at once, or what is left of it."""

    start: int
    """In the segment."""
    stop: int
    """Behind the last byte, in the segment."""
    epoch: int
    """The epoch of the write."""
    content: int | None
    """The number of the content that has the bytes; None: the segment's row has them."""
    at: int
    """Where they begin in there."""

    def cut(self, start: int, stop: int) -> "Extent":
        """Return what of the extent is in a range that it touches."""
        first, last = max(start, self.start), min(stop, self.stop)
        return self._replace(start=first, stop=last, at=self.at + first - self.start)


class ClearedRange(NamedTuple):
    """A range of a segment that was cleared."""

    start: int
    """In the segment."""
    stop: int
    """Behind the last byte, in the segment."""
    epoch: int
    """The epoch of the deletion; the first epoch is left out, as no snapshot is older."""


class PageSlice(NamedTuple):
    """Bytes to be read: of a content, of a row, or zeros."""

    length: int
    content: int | None = None
    at: int = 0
    """Where they begin in the content."""
    inline: bytes | None = None
    """The bytes of the row. They are zeros if there is neither this nor a content."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment. Offsets are from its beginning."""

    since: int = 0
    """The epoch of its last change."""
    extents: tuple[Extent, ...] = ()
    inline: bytes = b""
    """The bytes of the extents without a content."""
    cleared: tuple[ClearedRange, ...] = ()
    """Sorted, without overlaps."""

    def write(self, start: int, stop: int, epoch: int, content: int, at: int = 0) -> Self:
        """Return the segment after a range got the bytes of a content, from `at` on."""
        return self._with(Extent(start, stop, epoch, content, at), epoch)

    def write_inline(self, start: int, data: bytes, epoch: int) -> Self:
        """Return the segment after bytes were written to its row."""
        extent = Extent(start, start + len(data), epoch, None, len(self.inline))
        return replace(self, inline=self.inline + data)._with(extent, epoch)

    def clear(self, start: int, stop: int, epoch: int) -> Self:
        """Return the segment without a range. It keeps which pages it had there, unless no snapshot is older."""
        before, after = self._around(start, stop)
        gone = [ClearedRange(each.start, each.stop, epoch) for each in self.within(start, stop)] if epoch else []
        cleared = self.cleared if not gone else tuple(_joined(sorted([*self.cleared, *gone])))
        return replace(self, since=epoch, extents=(*before, *after), cleared=cleared)._compact()

    def moved(self, content: int) -> Self:
        """Return the segment after the bytes of its row became a content."""
        extents = tuple(each if each.content is not None else each._replace(content=content) for each in self.extents)
        return replace(self, extents=extents, inline=b"")

    def contents(self) -> set[int]:
        """Return the contents that it refers to."""
        return {each.content for each in self.extents if each.content is not None}

    def released(self, successor: Self) -> set[int]:
        """Return the contents that nothing refers to once a successor takes its place.

        None are released where the segment is kept in history, nor those that history may refer to.
        """
        if successor.since != self.since:
            return set()
        older = {each.content for each in self.extents if each.epoch < self.since}
        return self.contents() - older - successor.contents()

    def within(self, start: int, stop: int) -> Iterator[Extent]:
        """Yield what of the extents is in a range."""
        for index in range(bisect_right(self.extents, start, key=_STOP), len(self.extents)):
            extent = self.extents[index]
            if extent.start >= stop:
                return
            yield extent.cut(start, stop)

    def pieces(self, start: int, stop: int) -> Iterator[PageSlice]:
        """Yield the bytes of a range, as pieces without a gap."""
        at = start
        for extent in self.within(start, stop):
            if extent.start > at:
                yield PageSlice(extent.start - at)
            length = extent.stop - extent.start
            inline = self.inline[extent.at : extent.at + length] if extent.content is None else None
            yield PageSlice(length, extent.content, extent.at, inline)
            at = extent.stop
        if stop > at:
            yield PageSlice(stop - at)

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        packed = (
            _EXTENT.pack(start, stop, epoch, 0 if content is None else content + 1, at)
            for start, stop, epoch, content, at in self.extents
        )
        cleared = (_CLEARED.pack(*each) for each in self.cleared)
        return b"".join((_HEAD.pack(_VERSION, self.since, len(self.extents)), *packed, self.inline, *cleared))

    def _with(self, extent: Extent, epoch: int) -> Self:
        cleared = tuple(_outside(self.cleared, extent.start, extent.stop)) if self.cleared else ()
        before, after = self._around(extent.start, extent.stop)
        if before and _continues(before[-1], extent):
            extent = before.pop()._replace(stop=extent.stop)
        if after and _continues(extent, after[0]):
            extent = extent._replace(stop=after.pop(0).stop)
        return replace(self, since=epoch, extents=(*before, extent, *after), cleared=cleared)._compact()

    def _around(self, start: int, stop: int) -> tuple[list[Extent], list[Extent]]:
        """Return the extents before a range and behind it, cut off at its bounds."""
        before = list(self.within(0, start)) if start else []
        return before, list(self.within(stop, SEGMENT_BYTES))

    def _compact(self) -> Self:
        """Drop bytes of the row that no extent has any more."""
        used = sum(each.stop - each.start for each in self.extents if each.content is None)
        if used == len(self.inline):
            return self
        parts: list[bytes] = []
        extents: list[Extent] = []
        at = 0
        for each in self.extents:
            if each.content is None:
                length = each.stop - each.start
                parts.append(self.inline[each.at : each.at + length])
                each, at = each._replace(at=at), at + length  # noqa: PLW2901
            extents.append(each)
        return replace(self, extents=tuple(extents), inline=b"".join(parts))


def _continues(first: Extent, second: Extent) -> bool:
    """Tell whether two extents were one range of one write, or may be taken for it."""
    return first.stop == second.start and first[2:4] == second[2:4] and first.at + first.stop - first.start == second.at


def _joined(ranges: Iterable[ClearedRange]) -> Iterator[ClearedRange]:
    """Yield sorted ranges with those joined that touch and have one epoch."""
    last: ClearedRange | None = None
    for each in ranges:
        if last is not None and last[1:] == (each.start, each.epoch):
            last = last._replace(stop=each.stop)
        else:
            if last is not None:
                yield last
            last = each
    if last is not None:
        yield last


def _outside(ranges: Iterable[ClearedRange], start: int, stop: int) -> Iterator[ClearedRange]:
    """Yield what of some ranges is outside of another one."""
    for each in ranges:
        if each.start < start:
            yield each._replace(stop=min(each.stop, start))
        if each.stop > stop:
            yield each._replace(start=max(each.start, stop))


def read_segment(value: bytes | None) -> Segment:
    """Read the stored form; None, an absent row, is a segment without pages.

    Raises:
        ValueError: it is malformed.
    """
    if value is None:
        return _EMPTY
    try:
        version, since, count = _HEAD.unpack_from(value)
        end = _HEAD.size + count * _EXTENT.size
        packed = _EXTENT.iter_unpack(value[_HEAD.size : end])
    except StructError as error:
        raise ValueError("not a segment") from error
    extents = tuple(
        Extent(start, stop, epoch, content - 1 if content else None, at) for start, stop, epoch, content, at in packed
    )
    at = end + sum(each.stop - each.start for each in extents if each.content is None)
    if version != _VERSION or len(extents) != count or (len(value) - at) % _CLEARED.size or at > len(value):
        raise ValueError("not a segment")
    return Segment(since, extents, value[end:at], tuple(map(ClearedRange._make, _CLEARED.iter_unpack(value[at:]))))


_EMPTY = Segment()


def is_segment(value: bytes) -> bool:
    """Tell whether a row of a list is a segment, and not blocks, which are JSON."""
    return value[0] == _VERSION


def segments_of(start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Yield the segments of a range of a blob: the offset of each, and the part of it, from its beginning."""
    while start < stop:
        base = start - start % SEGMENT_BYTES
        yield base, start - base, min(stop - base, SEGMENT_BYTES)
        start = base + SEGMENT_BYTES


def segment_row(list_: int, base: int) -> str:
    """Return the row of the segment at an offset as it is now."""
    return list_row(list_, base + SEGMENT_BYTES)


def history_row(list_: int, base: int, last: int) -> str:
    """Return the row of that segment as it was up to an epoch. It follows `segment_row`; older ones come first."""
    return f"{segment_row(list_, base)}/{number(last)}"


def changed_rows(list_: int, base: int, value: bytes | None, segment: Segment) -> dict[str, bytes | None]:
    """Return the rows to write, None for one to delete, when a segment changes.

    Args:
        list_: of the blob.
        base: the offset of the segment.
        value: its row before the change; an absent one needs no history.
        segment: after the change.
    """
    rows = {segment_row(list_, base): segment.to_bytes() if segment.extents or segment.cleared else None}
    if value is not None and read_segment(value).since < segment.since:
        rows[history_row(list_, base, segment.since - 1)] = value
    return rows


def as_of(epoch: int, now: Segment, history: Iterable[tuple[int, Segment]]) -> Segment:
    """Return a segment as it was in an epoch.

    Args:
        epoch: of the blob or snapshot.
        now: the segment as it is now.
        history: the last epoch of each earlier state and the state, oldest first.
    """
    found = next((segment for last, segment in history if last >= epoch), now)
    return found if found.since <= epoch else _EMPTY
