"""Reads the segments of a page blob as they were in the epoch of a blob or snapshot."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from lazulite.blob.model.blob import Blob
from lazulite.blob.model.pages import SEGMENT_BYTES, Segment, as_of, read_segment, segment_row
from lazulite.blob.model.rows import list_rows
from lazulite.blob.storage.readers import Partition
from lazulite.engine.contract import Engine, KeyRange


class StoredSegment(NamedTuple):
    """What is stored of a segment."""

    base: int
    """Its offset."""
    now: Segment
    history: list[tuple[int, Segment]]
    """The last epoch of each earlier state and the state, oldest first."""

    def as_of(self, epoch: int) -> Segment:
        """Return the segment as it was in an epoch."""
        return as_of(epoch, self.now, self.history)


async def stored_segments(
    engine: Engine, partition: Partition, blob: Blob, start: int, stop: int
) -> AsyncGenerator[StoredSegment, None]:
    """Yield the segments that have rows, and bytes from `start` up to `stop`."""
    space, name = partition
    prefix = list_rows(blob.list)
    first = segment_row(blob.list, start - start % SEGMENT_BYTES)
    found: StoredSegment | None = None
    async with aclosing(engine.scan(space, [KeyRange((name, first), (name, prefix[:-1] + "0"))])) as parts:
        async for part in parts:
            for index, value in enumerate(part.values):
                end, _, last = part.key(index)[1].removeprefix(prefix).partition("/")
                base = int(end, 16) - SEGMENT_BYTES
                if base >= stop:
                    if found is not None:
                        yield found
                    return
                if found is None or found.base != base:
                    if found is not None:
                        yield found
                    found = StoredSegment(base, Segment(), [])
                if last:
                    found.history.append((int(last, 16), read_segment(value)))
                else:
                    found = found._replace(now=read_segment(value))
    if found is not None:
        yield found
