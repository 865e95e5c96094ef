"""Load and delete many rows, with an asynchronous client."""

from collections.abc import AsyncIterable, Callable, Iterable
from typing import TypeVar

from lazulite_patterns.aio.table import Table
from lazulite_patterns.bulk.job import Job, Limits, Progress, Report
from lazulite_patterns.bulk.load import KINDS, Loading
from lazulite_patterns.checkpoints import Checkpoint
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.outcomes.verdict import Planned

E = TypeVar("E")
R = TypeVar("R")


async def load(
    table: Table[E],
    rows: Iterable[E] | AsyncIterable[E],
    *,
    kind: Loading = "upsert",
    limits: Limits = Limits(),  # noqa: B008 - it is frozen
    checkpoint: Checkpoint | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Write many entities, as `lazulite_patterns.bulk.load` does."""
    session = table._session

    def planned(row: E) -> Planned:
        return session.planned(KINDS[kind], row)

    return await _run(table, rows, Job(session, planned, limits, checkpoint, progress))


async def delete(
    table: Table[E],
    keys: Iterable[E | EntityKey] | AsyncIterable[E | EntityKey],
    *,
    limits: Limits = Limits(),  # noqa: B008 - it is frozen
    checkpoint: Checkpoint | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Delete many entities, as `lazulite_patterns.bulk.delete` does."""
    job: Job[E, E | EntityKey] = Job(table._session, table._session.deleting, limits, checkpoint, progress)
    return await _run(table, keys, job)


async def _run(table: Table[E], rows: Iterable[R] | AsyncIterable[R], job: Job[E, R]) -> Report:
    driver = table._driver
    number = 0
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            number += 1
            if number > job.skip:
                await driver.run(job.add(row))
    else:
        for row in rows:
            number += 1
            if number > job.skip:
                await driver.run(job.add(row))
    return await driver.run(job.end())
