"""Load and delete many rows, with a synchronous client."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Literal, TypeVar

from lazulite_patterns.bulk.job import Job, Limits, Progress, Report
from lazulite_patterns.checkpoints import Checkpoint
from lazulite_patterns.effects.tables import EntityKey, Kind
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.table.table import Table

E = TypeVar("E")
R = TypeVar("R")
Loading = Literal["upsert", "insert"]
KINDS: dict[Loading, Kind] = {"upsert": Kind.PUT, "insert": Kind.INSERT}


def load(
    table: Table[E],
    rows: Iterable[E],
    *,
    kind: Loading = "upsert",
    limits: Limits = Limits(),  # noqa: B008 - it is frozen
    checkpoint: Checkpoint | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Write many entities, those of a partition in transactions of up to a hundred.

    Args:
        table: the table.
        rows: the entities, in any order; in the same order again after a crash, if there is a checkpoint.
        kind: `upsert` overwrites what is there; `insert` fails a row that is there with other properties.
        limits: of memory, workers and failures.
        checkpoint: keeps how far the load is.
        progress: called now and then.

    Returns:
        What was done, and the rows that failed.

    Raises:
        TooManyFailures: more rows failed than the limit says.
        OutcomeUnknown: the service did not answer before the deadline. Load again with the checkpoint.
        Rejected: the service rejects the requests, as for a table that is absent.
    """
    session = table._session

    def planned(row: E) -> Planned:
        return session.planned(KINDS[kind], row)

    return _run(table, rows, Job(session, planned, limits, checkpoint, progress))


def delete(
    table: Table[E],
    keys: Iterable[E | EntityKey],
    *,
    limits: Limits = Limits(),  # noqa: B008 - it is frozen
    checkpoint: Checkpoint | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Delete many entities. An absent one is done; one that was read fails if its row was changed since.

    Args:
        table: the table.
        keys: keys, or entities.
        limits: as of `load`.
        checkpoint: as of `load`.
        progress: as of `load`.
    """
    job: Job[E, E | EntityKey] = Job(table._session, table._session.deleting, limits, checkpoint, progress)
    return _run(table, keys, job)


def _run(table: Table[E], rows: Iterable[R], job: Job[E, R]) -> Report:
    driver = table._driver
    for row in islice(rows, job.skip, None):
        driver.run(job.add(row))
    return driver.run(job.end())
