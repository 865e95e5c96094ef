"""The ranges that Get Page Ranges returns: written pages, or what changed since a snapshot. Source: REST reference."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from lazulite.blob.model.pages import Segment

_STOP = itemgetter(1)


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

    A page that was both written and cleared since is cleared (§44).

    Args:
        then: the segment as it was in the snapshot.
        now: as it is, or as it was in a later snapshot.
        epoch: of the snapshot.
        start: of the part.
        stop: of the part.
    """
    since = [(each.start, each.stop) for each in now.cleared if each.epoch > epoch]
    gone = _union([*since, *((each.start, each.stop) for each in then.within(start, stop))])
    at = start
    for extent in now.within(start, stop):
        yield from _cleared(gone, at, extent.start)
        if extent.epoch > epoch:
            yield PageRange(extent.start, extent.stop)
        at = extent.stop
    yield from _cleared(gone, at, stop)


def _union(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges that cover the same pages, in order and without overlaps."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((start, stop))
    return found


def _cleared(gone: list[tuple[int, int]], start: int, stop: int) -> Iterator[PageRange]:
    """Yield what is gone of a part that has no pages now."""
    for index in range(bisect_right(gone, start, key=_STOP) if start < stop else len(gone), len(gone)):
        first, last = gone[index]
        if first >= stop:
            return
        yield PageRange(max(first, start), min(last, stop), is_cleared=True)


def append_ranges(found: list[PageRange], base: int, ranges: Iterable[PageRange]) -> None:
    """Append the ranges of the next segment to those of the blob; touching ones of one kind become one.

    Args:
        found: the ranges of the segments before it.
        base: its offset.
        ranges: of the segment, in order.
    """
    for start, stop, is_cleared in ranges:
        last = found[-1] if found else None
        if last is not None and last.stop == base + start and last.is_cleared == is_cleared:
            found[-1] = last._replace(stop=base + stop)
        else:
            found.append(PageRange(base + start, base + stop, is_cleared))
