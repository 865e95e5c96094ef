"""The first pass of a copy: write every row of the source to the target.

Invariants:

- No row is written before the journal records that a copy is in progress.
- The target's format is that of stores with indexes, if the source's is, before it has a table.
- A row that is copied twice is unchanged.
- The contents to which the rows of a part refer are copied before its rows.
- The target's commit timestamps are above the Timestamp of every entity in it.
- Memory holds one `CommitWindow` and the list of tables.
- A commit has rows of one partition, a bounded size, and is idempotent.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import NamedTuple

from lazulite.engine.commit import ABSENT, Commit, Decision, Values
from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.store_format import copy_format
from lazulite.migration.contents import copy_contents
from lazulite.migration.endpoint import Endpoint, MigrationError
from lazulite.migration.in_flight import CommitWindow
from lazulite.migration.journal import Journal
from lazulite.migration.monotonic_clock import MonotonicClock
from lazulite.migration.parts import StoredRow, StorePart, is_empty, parts_of, rows_of
from lazulite.migration.progress import Progress
from lazulite.records.spaces import CatalogFormat, Spaces

ROWS_MAX = 100
BYTES_MAX = 256 << 10
"""A batch of this many bytes accepts no more rows."""

RECORD_SECONDS = 1.0
"""The time between two updates of the journal."""

RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0)
"""The pauses before the retries of a commit for which the target was unavailable."""


@dataclass(slots=True)
class CommitBatch:
    """Hold successive rows of one partition."""

    partition: str
    rows: list[str] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    """The size of the values."""

    def add(self, row: StoredRow) -> None:
        """Add a row."""
        self.rows.append(row.row)
        self.values.append(row.value)
        self.size_bytes += len(row.value)

    def accepts(self, row: StoredRow) -> bool:
        """Return whether this batch accepts the row."""
        return row.partition == self.partition and len(self.rows) < ROWS_MAX and self.size_bytes < BYTES_MAX

    def commit(self) -> Commit[None]:
        """Return a commit that writes each row that the target lacks. It raises `MigrationError` for other rows."""
        return Commit(self.rows, self._decide, lambda _: [ABSENT] * len(self.rows))

    def _decide(self, current: Values, _: int) -> Decision[None]:
        changes: dict[str, bytes | None] = {}
        for row, before, after in zip(self.rows, current, self.values, strict=True):
            if before is None:
                changes[row] = after
            elif before != after:
                raise MigrationError(
                    f"the target has another row than the source at {(self.partition, row)!r}: "
                    "one of the two was written to meanwhile; empty the target and copy again"
                )
        return Decision(changes, None)


async def batches_of(runs: AsyncGenerator[list[StoredRow], None]) -> AsyncGenerator[CommitBatch, None]:
    """Yield the rows of `runs` in batches, in their order. Close `runs` at the end."""
    batch: CommitBatch | None = None
    async with aclosing(runs):
        async for run in runs:
            for row in run:
                if batch is None or not batch.accepts(row):
                    if batch is not None:
                        yield batch
                    batch = CommitBatch(row.partition)
                batch.add(row)
    if batch is not None:
        yield batch


class _Position(NamedTuple):
    """The last row of a batch, and its number of entities."""

    space: int
    partition: str
    row: str
    entities: int


@dataclass(frozen=True, slots=True)
class Timing:
    """The sources of time of a copy.

    Attributes:
        clock: the clock of the target's engine.
        timer: returns seconds.
        sleep: waits for a number of seconds.
    """

    clock: MonotonicClock
    timer: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


async def copy(
    source: Endpoint, target: Endpoint, spaces: Spaces, timing: Timing, report: Callable[[Progress], None]
) -> Journal:
    """Copy a store to an empty one, or resume an interrupted copy.

    Args:
        source: the store to read. No process may write to it meanwhile.
        target: the store to write. No other process may use it.
        spaces: the registry of all services.
        timing: the clock of the target, and timers.
        report: called often, each time with the same `Progress`.

    Returns:
        The journal. The caller ends it before the target may be served.

    Raises:
        MigrationError: the target is not empty, or the source is itself an unfinished copy.
        EngineError: a store failed. The same call resumes the copy later.
    """
    if await Journal.unfinished(source.engine) is not None:
        raise MigrationError(f"{source.name} is itself an unfinished copy")
    parts = await parts_of(source.engine, spaces)
    journal = await _journal(source, target, spaces)
    await copy_format(source.engine, target.engine)
    accounts = await source.accounts.load()
    if accounts != await target.accounts.load():
        await target.accounts.edit(lambda _: accounts)
    await _CopyRun(source, target, journal, timing, report).run(parts)
    return journal


async def _journal(source: Endpoint, target: Endpoint, spaces: Spaces) -> Journal:
    journal = await Journal.unfinished(target.engine)
    if journal is None:
        if not await is_empty(target.engine, spaces) or await target.accounts.load():
            raise MigrationError(f"{target.name} is not empty; a copy needs an empty target")
        return await Journal.begin(target.engine, source.name)
    begun = journal.position.source
    if begun != source.name:
        raise MigrationError(f"{target.name} is an unfinished copy of {begun}, not of {source.name}")
    return journal


class _CopyRun:
    def __init__(
        self, source: Endpoint, target: Endpoint, journal: Journal, timing: Timing, report: Callable[[Progress], None]
    ) -> None:
        self._source = source
        self._target = target
        self._journal = journal
        self._timing = timing
        self._report = report
        position = journal.position
        self._start = position
        self._done = _Position(position.space, position.partition, position.row, position.entities)
        self._recorded_at = timing.timer()
        self._progress = Progress("copied", rows=position.entities)

    async def run(self, parts: list[StorePart]) -> None:
        self._progress.parts = sum(part.catalog is not None for part in parts)
        async with CommitWindow(self._on_durable) as window:
            for part in parts:
                if part.space >= self._start.space:
                    await copy_contents(self._source.engine, part, self._source.contents, self._target.contents)
                    await self._copy(part, window)
                self._progress.parts_done += part.catalog is not None
                self._report(self._progress)
        await self._journal.record(*self._done)

    async def _copy(self, part: StorePart, window: CommitWindow[_Position]) -> None:
        start = self._start
        after = (start.partition, start.row) if part.space == start.space else None
        async with aclosing(batches_of(rows_of(self._source.engine, part, after))) as batches:
            async for batch in batches:
                if part.catalog is not None:
                    self._advance_clock(part, part.catalog, batch)
                entities = 0 if part.catalog is None else len(batch.rows)
                done = _Position(part.space, batch.partition, batch.rows[-1], entities)
                await window.add(self._put(part.space, batch), batch.size_bytes, done)
                now = self._timing.timer()
                if now >= self._recorded_at + RECORD_SECONDS:
                    self._recorded_at = now
                    await self._journal.record(*self._done)

    def _advance_clock(self, part: StorePart, catalog: CatalogFormat, batch: CommitBatch) -> None:
        try:
            self._timing.clock.advance_to(max(map(catalog.timestamp, batch.values)))
        except AssertionError as error:
            raise MigrationError(f"{catalog.nouns.space} {part.name}, partition {batch.partition!r}: {error}") from None

    async def _put(self, space: int, batch: CommitBatch) -> None:
        for seconds in (*RETRY_SECONDS, None):
            try:
                await self._target.engine.commit(space, batch.partition, batch.commit())
            except EngineUnavailableError:
                if seconds is None:
                    raise
                await self._timing.sleep(seconds)
            else:
                return

    def _on_durable(self, done: _Position) -> None:
        self._done = done._replace(entities=self._done.entities + done.entities)
        self._progress.rows = self._done.entities
        self._report(self._progress)
