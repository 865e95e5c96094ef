"""A log in append blobs: how records of some time are read.

The names of each day are listed, with metadata. Blobs whose times lie outside are left out. The others of one period
are merged by time, part by part: of each, records are read when they may be the next ones. A blob is read to where it
ended when it was listed. So a read that goes on for long meets no block twice, and none in part.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from lazulite_patterns.effects.blobs import PART_BYTES, BlobFacts, BlobGet, BlobPage
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.shapes.errors import Inconsistent
from lazulite_patterns.shapes.protocols.blob_log import BLOCK_BYTES_MAX
from lazulite_patterns.shapes.protocols.log_format import FIRST, LEAST, LogNames, LogRecord, Span, known, record_of


@dataclass
class Cursor:
    """A blob that is being read."""

    name: str
    length: int
    first: datetime
    """No record is earlier."""
    start: int = 0
    rest: bytes = b""
    records: deque[LogRecord] = field(default_factory=deque)

    @property
    def next(self) -> datetime:
        """The time of the next record, or one before."""
        return self.records[0].time if self.records else self.first


@dataclass(frozen=True)
class LogReader:
    """Reads a log.

    Attributes:
        container: the name by which the driver knows the container.
        names: of the blobs.
        policy: of each request.
        part_bytes: what one request reads.
    """

    container: str
    names: LogNames
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen
    part_bytes: int = PART_BYTES

    def periods(self, day: str, wanted: Span) -> Protocol[list[list[Cursor]]]:
        """List the blobs of a day that may have records of some time, by their periods."""
        found: list[BlobFacts] = []
        continuation: str | None = None
        while True:
            effect = BlobPage(self.container, day, continuation)
            page = yield from read(effect, (yield from begin(self.policy)))
            found += [each for each in page.blobs if self._concerns(each, wanted)]
            if (continuation := page.continuation) is None:
                break
        return [
            [Cursor(each.name, each.length, known(each, FIRST, LEAST)) for each in group]
            for _, group in groupby(found, lambda each: each.name.rpartition("/")[0])
        ]

    def page(self, cursors: list[Cursor], wanted: Span) -> Protocol[Sequence[LogRecord]]:
        """Return the next records of a period, in the order of their times; none at the end."""
        out: list[LogRecord] = []
        while cursors:
            earliest = min(cursors, key=lambda each: each.next)
            if earliest.records:
                out.append(earliest.records.popleft())
            elif earliest.start >= earliest.length:
                cursors.remove(earliest)
            elif out:
                break  # What comes next needs a request.
            else:
                yield from self._fill(earliest, wanted)
        return out

    def _concerns(self, facts: BlobFacts, wanted: Span) -> bool:
        period = facts.name[: facts.name.rfind("/") + 1]
        inside = self.names.period(wanted.first) <= period <= self.names.period(wanted.last)
        return inside and self.names.number(period, facts.name) > 0 and wanted.meets(facts)

    def _fill(self, cursor: Cursor, wanted: Span) -> Protocol[None]:
        """Read the next part of a blob. One that was deleted meanwhile has no more records."""
        count = min(self.part_bytes, cursor.length - cursor.start)
        effect = BlobGet(self.container, cursor.name, cursor.start, count)
        part = yield from read(effect, (yield from begin(self.policy)))
        if not part:
            cursor.start = cursor.length
            return
        *lines, cursor.rest = (cursor.rest + part).split(b"\n")
        if len(cursor.rest) > BLOCK_BYTES_MAX:
            raise Inconsistent(f"the blob {cursor.name} has a line that is longer than a record")
        cursor.start += len(part)
        found = [record_of(cursor.name, each) for each in lines]
        cursor.records.extend(each for each in found if wanted.first <= each.time <= wanted.last)
        if found and found[-1].time > wanted.last:
            cursor.start = cursor.length
