"""A log in append blobs: how records are appended.

Records wait in memory. A flush takes the oldest ones of one period, at most 4 MiB: a *block*.

1. If the writer has no blob of the period, or that is full, claim the next number: create its blob, which must be
   absent. So a blob has one writer for its whole life, and a name after a lost answer is not taken again.
2. Append the block on the condition that the blob ends where this writer's last block ended.
3. Forget the records of the block.

If an answer is lost, step 2 is done again, with the same octets at the same position. If the blob does not end there
any more, the octets at the position decide: either they are the block, or another program wrote there. Then the block
is in the blob nowhere, never will be, and goes into another blob. So a record is in the log once.

When the writer goes on to another blob, it writes the time of the last record to the metadata of the one before.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from lazulite_patterns.effects.blobs import Append, AppendCreate, BlobGet, BlobPage, BlobSetMetadata
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.runtime import UtcNow
from lazulite_patterns.outcomes.errors import Unavailable
from lazulite_patterns.outcomes.retries import Attempts, Policy, at_least_once, begin, read
from lazulite_patterns.shapes.protocols.log_format import FIRST, LAST, LEAST, LogNames, LogRecord, line

BLOCK_BYTES_MAX = 4 * 1024 * 1024
"""The most octets of a block: what all versions of the service take."""
BLOCKS_MAX = 50_000
"""The most blocks of a blob, by the service's limit."""
_ABSENT, _EXISTS, _CHANGED, _BEYOND = 404, 409, 412, 416


class Line(NamedTuple):
    """A record that waits."""

    time: datetime
    text: bytes


@dataclass(frozen=True)
class Block:
    """Records of one period that are appended together."""

    period: str
    lines: Sequence[Line]
    data: bytes


@dataclass
class Open:
    """The blob that a writer appends to."""

    name: str
    period: str
    first: datetime
    last: datetime
    length: int = 0
    blocks: int = 0


@dataclass
class LogWriter:
    """Appends to a log. One protocol at a time may run.

    Attributes:
        container: the name by which the driver knows the container.
        names: of the blobs.
        flush_bytes: octets that wait, from which on `append` flushes first.
        flush_seconds: the age of the oldest record, from which on `append` flushes first.
        policy: of each block.
        blocks_max: of a blob.
    """

    container: str
    names: LogNames
    flush_bytes: int
    flush_seconds: float
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen
    blocks_max: int = BLOCKS_MAX
    _lines: list[Line] = field(default_factory=list)
    _bytes: int = 0
    _latest: datetime = LEAST
    _block: Block | None = None
    """What may be in the blob already: the same octets are appended again."""
    _blob: Open | None = None

    def append(self, record: object) -> Protocol[None]:
        """Take a record, after a flush if that is due.

        Raises:
            TypeError: the record is not what JSON has.
            ValueError: it exceeds 4 MiB.
            Unavailable: the flush was not answered before the deadline. The record was not taken.
        """
        now = yield from perform(UtcNow())
        time = max(now, self._latest)  # A clock that goes back leaves the records in order.
        text = line(LogRecord(time, record))
        if len(text) > BLOCK_BYTES_MAX:
            raise ValueError(f"a record of {len(text):,} bytes; {BLOCK_BYTES_MAX:,} fit")
        if self._lines and self._is_due(now):
            yield from self.flush()
        self._lines.append(Line(time, text))
        self._bytes += len(text)
        self._latest = time

    def flush(self) -> Protocol[None]:
        """Append all records that wait.

        Raises:
            Unavailable: there was no answer before the deadline. The records wait for the next flush.
        """
        while self._lines:
            block = self._block = self._block or self._oldest()
            yield from self._written(block)
            del self._lines[: len(block.lines)]
            self._bytes -= len(block.data)
            self._block = None

    def close(self) -> Protocol[None]:
        """Append all records that wait, and close the blob. The next record opens another one."""
        yield from self.flush()
        yield from self._closed()

    def _is_due(self, now: datetime) -> bool:
        age = (now - self._lines[0].time).total_seconds()
        return self._bytes >= self.flush_bytes or age >= self.flush_seconds

    def _oldest(self) -> Block:
        period = self.names.period(self._lines[0].time)
        lines: list[Line] = []
        size = 0
        for each in self._lines:
            size += len(each.text)
            if size > BLOCK_BYTES_MAX or self.names.period(each.time) != period:
                break
            lines.append(each)
        return Block(period, lines, b"".join(each.text for each in lines))

    def _written(self, block: Block) -> Protocol[None]:
        """Append a block to the blob of its period, or to another one if something is wrong with that."""
        attempts = yield from begin(self.policy)
        while True:
            blob = yield from self._opened(block, attempts)
            if (yield from self._appended(blob, block, attempts)):
                blob.length += len(block.data)
                blob.blocks += 1
                blob.last = block.lines[-1].time
                return
            self._blob = None

    def _opened(self, block: Block, attempts: Attempts) -> Protocol[Open]:
        if self._blob is not None and (self._blob.period != block.period or self._blob.blocks >= self.blocks_max):
            yield from self._closed()
        if self._blob is None:
            self._blob = yield from self._claimed(block, attempts)
        return self._blob

    def _claimed(self, block: Block, attempts: Attempts) -> Protocol[Open]:
        """Create the blob of the next number."""
        number = (yield from self._last_number(block.period, attempts)) + 1
        first = block.lines[0].time
        while True:
            name = self.names.numbered(block.period, number)
            try:
                create = AppendCreate(self.container, name, {FIRST: first.isoformat()}, "application/jsonl")
                yield from at_least_once(create, attempts, Unavailable)
            except Rejected as rejected:
                if rejected.status != _EXISTS:
                    raise
                number += 1  # If an earlier request of this one was done, that blob stays empty.
            else:
                return Open(name, block.period, first, first)

    def _last_number(self, period: str, attempts: Attempts) -> Protocol[int]:
        last, continuation = 0, None
        while True:
            found = yield from read(BlobPage(self.container, period, continuation), attempts)
            last = max([last, *(self.names.number(period, each.name) for each in found.blobs)])
            if (continuation := found.continuation) is None:
                return last

    def _appended(self, blob: Open, block: Block, attempts: Attempts) -> Protocol[bool]:
        """Append a block; False if it is not in the blob, and never will be."""
        try:
            append = Append(self.container, blob.name, block.data, blob.length)
            yield from at_least_once(append, attempts, Unavailable)
        except Rejected as rejected:
            if rejected.status == _CHANGED:
                return (yield from self._is_there(blob, block, attempts))
            if rejected.status == _ABSENT and rejected.code == "BlobNotFound":
                return False
            raise
        return True

    def _is_there(self, blob: Open, block: Block, attempts: Attempts) -> Protocol[bool]:
        """Tell whether a block is where it was to be appended."""
        try:
            effect = BlobGet(self.container, blob.name, blob.length, len(block.data))
            return (yield from read(effect, attempts)) == block.data
        except Rejected as rejected:
            if rejected.status != _BEYOND:
                raise
            return False

    def _closed(self) -> Protocol[None]:
        """Write the metadata of the blob. If that fails, a reader reads the blob to its end."""
        blob, self._blob = self._blob, None
        if blob is None:
            return
        metadata = {FIRST: blob.first.isoformat(), LAST: blob.last.isoformat()}
        with suppress(Rejected, Unavailable):
            yield from read(BlobSetMetadata(self.container, blob.name, metadata), (yield from begin(self.policy)))
