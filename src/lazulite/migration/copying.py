"""The first pass of a copy: every row of the source, put into the target.

Invariants: nothing is written before the journal says that a copy is under way; a row that is copied twice stays as it
is; the target's stamps are above the Timestamp of every entity in it. Memory holds no more than a `Window` and the list
of tables.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.engine.contract import EngineUnavailableError
from lazulite.migration.commit_batches import Batch, batches_of
from lazulite.migration.endpoint import Store, TransferError
from lazulite.migration.in_flight import Window
from lazulite.migration.journal import Journal
from lazulite.migration.monotonic_clock import RisingClock
from lazulite.migration.parts import Part, is_empty, parts_of, rows_of
from lazulite.migration.progress import Tally
from lazulite.table.model.row import ticks_of

NOTE_SECONDS = 1.0
"""So often the journal is brought up to date."""

RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0)
"""How long to wait before a commit is tried again that the target could not take for now."""


class _Done(NamedTuple):
    """The end of a batch."""

    space: int
    partition: str
    row: str
    entities: int


@dataclass(frozen=True, slots=True)
class Means:
    """What a copy needs of the world.

    Attributes:
        clock: the very one that the target's engine asks.
        timer: counts seconds.
        sleep: lets some of them pass.
    """

    clock: RisingClock
    timer: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


async def copy(source: Store, target: Store, means: Means, report: Callable[[Tally], None]) -> Journal:
    """Copy a store to one that is empty, or go on with the copy that was begun there.

    Args:
        source: nothing may write to it meanwhile.
        target: nothing else may use it.
        means: see there.
        report: told of progress, often; the tally is always the same one.

    Returns:
        The journal. The target is not to be served before it is ended.

    Raises:
        TransferError: the target is in use for something else, or the source is no whole store.
        EngineError: one of the stores failed; the same call goes on with the copy later.
    """
    if await Journal.unfinished(source.engine) is not None:
        raise TransferError(f"{source.name} is itself an unfinished copy")
    parts = await parts_of(source.engine)
    journal = await _journal(source, target)
    accounts = await source.accounts.load()
    if accounts != await target.accounts.load():
        await target.accounts.edit(lambda _: accounts)
    await _Copying(source, target, journal, means, report).run(parts)
    return journal


async def _journal(source: Store, target: Store) -> Journal:
    journal = await Journal.unfinished(target.engine)
    if journal is None:
        if not await is_empty(target.engine) or await target.accounts.load():
            raise TransferError(f"{target.name} is not empty; a copy goes to an empty place")
        return await Journal.begin(target.engine, source.name)
    begun = journal.progress.source
    if begun != source.name:
        raise TransferError(f"{target.name} is an unfinished copy of {begun}, not of {source.name}")
    return journal


class _Copying:
    def __init__(
        self, source: Store, target: Store, journal: Journal, means: Means, report: Callable[[Tally], None]
    ) -> None:
        self._source = source
        self._target = target
        self._journal = journal
        self._means = means
        self._report = report
        progress = journal.progress
        self._start = progress
        self._done = _Done(progress.space, progress.partition, progress.row, progress.entities)
        self._noted_at = means.timer()
        self._tally = Tally("copied", entities=progress.entities)

    async def run(self, parts: list[Part]) -> None:
        self._tally.tables = sum(part.is_table for part in parts)
        async with Window(self._behind) as window:
            for part in parts:
                if part.space >= self._start.space:
                    await self._copy(part, window)
                self._tally.tables_done += part.is_table
                self._report(self._tally)
        await self._journal.note(*self._done)

    async def _copy(self, part: Part, window: Window[_Done]) -> None:
        start = self._start
        after = (start.partition, start.row) if part.space == start.space else None
        async with aclosing(batches_of(rows_of(self._source.engine, part, after))) as batches:
            async for batch in batches:
                if part.is_table:
                    self._raise_clock(part, batch)
                entities = len(batch.rows) if part.is_table else 0
                done = _Done(part.space, batch.partition, batch.rows[-1], entities)
                await window.add(self._put(part.space, batch), batch.size_bytes, done)
                now = self._means.timer()
                if now >= self._noted_at + NOTE_SECONDS:
                    self._noted_at = now
                    await self._journal.note(*self._done)

    def _raise_clock(self, part: Part, batch: Batch) -> None:
        try:
            self._means.clock.raise_to(max(map(ticks_of, batch.values)))
        except AssertionError as error:
            raise TransferError(f"table {part.name}, partition {batch.partition!r}: {error}") from None

    async def _put(self, space: int, batch: Batch) -> None:
        for seconds in (*RETRY_SECONDS, None):
            try:
                await self._target.engine.commit(space, batch.partition, batch.rows, batch)
            except EngineUnavailableError:
                if seconds is None:
                    raise
                await self._means.sleep(seconds)
            else:
                return

    def _behind(self, done: _Done) -> None:
        self._done = done._replace(entities=self._done.entities + done.entities)
        self._tally.entities = self._done.entities
        self._report(self._tally)
