"""Servers that lose contents in a database, or keep what has no blob."""

from collections.abc import Callable, Collection

from lazulite.blob.storage.garbage import Garbage
from lazulite.blob.storage.readers import Partition
from lazulite.engine.content.contract import ContentId, References
from lazulite.engine.postgres.contents import statements
from lazulite.engine.postgres.contents.store import PostgresContents


def kept_orphans() -> None:
    """Keep what a process left that was killed."""

    async def sweep(_: PostgresContents, references: References) -> int:
        return 0

    PostgresContents.sweep = sweep  # type: ignore[method-assign, assignment]


def swept_all() -> None:
    """Delete contents that have a row, if the process ended before it noted that."""
    sweep = PostgresContents.sweep

    async def sweep_all(rows: PostgresContents, _: References) -> int:
        async def nothing(_: object) -> Collection[ContentId]:
            return ()

        return await sweep(rows, nothing)

    PostgresContents.keep = lambda *_: None  # type: ignore[method-assign]
    PostgresContents.sweep = sweep_all  # type: ignore[method-assign, assignment]


def uncounted_windows() -> None:
    """Seal a content without a look at how much of it is there, and forget each third window."""
    vars(statements)["SEAL"] = statements.SEAL.replace("= $4", ">= least($4, 0)")
    for name in ("ADD_WINDOW", "ADD_WINDOW_UNSYNCED"):
        selected = "SELECT $1::bigint, $2::bigint, $3::integer, $4::bigint, $5::bytea"
        statement = vars(statements)[name].replace("VALUES ($1, $2, $3, $4, $5)", selected)
        vars(statements)[name] = f"{statement} WHERE $3 % 3 <> 2"


def forgotten_garbage() -> None:
    """Note that contents were deleted, and leave them."""

    async def delete(_: Garbage, __: Partition, contents: Collection[str]) -> None:
        """Delete nothing."""

    Garbage._delete_contents = delete  # type: ignore[method-assign, assignment]


def swept_early() -> None:
    """Sweep what is undecided, however young it is."""
    for name in ("UNDECIDED", "DOOM_OVERDUE"):
        vars(statements)[name] = vars(statements)[name].replace("AND since < now() - interval '1 hour'", "")


MUTATIONS: dict[str, Callable[[], None]] = {
    f"blob-database-{each.__name__.replace('_', '-')}": each
    for each in (kept_orphans, swept_all, uncounted_windows, forgotten_garbage, swept_early)
}
