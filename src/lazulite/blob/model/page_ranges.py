"""The ranges that Get Page Ranges returns: written pages, or what changed since a snapshot. Source: REST reference."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lazulite.blob.model.pages import Segment


class PageRange(NamedTuple):
    """A range of a blob."""

    start: int
    stop: int
    """Behind the last byte."""
    is_cleared: bool = False
    """Whether it was cleared since a snapshot."""


def written_ranges(segment: Segment, start: int, stop: int) -> Iterator[PageRange]:
    """Yield the written pages in a part of a segment. Ranges may touch."""
    for extent in segment.within(start, stop):
        yield PageRange(extent.start, extent.stop)


def changed_ranges(then: Segment, now: Segment, epoch: int, start: int, stop: int) -> Iterator[PageRange]:
    """Yield in order the pages in a part of a segment that were written or cleared since a snapshot. Ranges may touch.

    Args:
        then: the segment as it was in the snapshot.
        now: as it is, or as it was in a later snapshot.
        epoch: of the snapshot.
        start: of the part.
        stop: of the part.
    """
    at = start
    for extent in now.within(start, stop):
        yield from _cleared(then, at, extent.start)
        if extent.epoch > epoch:
            yield PageRange(extent.start, extent.stop)
        at = extent.stop
    yield from _cleared(then, at, stop)


def _cleared(then: Segment, start: int, stop: int) -> Iterator[PageRange]:
    """Yield what was written in a part that has no pages now."""
    if start < stop:
        for extent in then.within(start, stop):
            yield PageRange(extent.start, extent.stop, is_cleared=True)


def joined(parts: Iterable[tuple[int, Iterable[PageRange]]]) -> Iterator[PageRange]:
    """Yield the ranges of a blob: those of its segments, with touching ones of one kind joined.

    Args:
        parts: the offset of each segment, in order, and its ranges.
    """
    last: PageRange | None = None
    for base, ranges in parts:
        for start, stop, is_cleared in ranges:
            found = PageRange(base + start, base + stop, is_cleared)
            if last is not None and last.stop == found.start and last.is_cleared == is_cleared:
                last = last._replace(stop=found.stop)
            else:
                if last is not None:
                    yield last
                last = found
    if last is not None:
        yield last
