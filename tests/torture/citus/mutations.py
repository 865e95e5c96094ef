"""Servers that break one promise of the engine for Citus each, which the campaign must find."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import asyncpg

from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.engine.postgres import sql_scripts
from lazulite.engine.postgres.drops import DroppedSpaceCache
from lazulite.engine.postgres.errors import CHECK_FAILED
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.sql_scripts import PartitionAddress
from tests.torture.mutations import replace_attributes

_run, _fetch, _fetch_each = Pool.run, Pool.fetch, Pool.fetch_each


def answer_before_commit() -> None:
    """Answer a write when its script is sent."""
    tasks = set()

    async def send(pool: Pool, script: str, partition: bytes) -> None:
        with suppress(EngineError, *CHECK_FAILED):
            await _run(pool, script, partition)

    async def early(pool: Pool, script: str, partition: bytes) -> None:
        task = asyncio.create_task(send(pool, script, partition))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    replace_attributes(Pool, run=early)


def failed_write_succeeds() -> None:
    """Acknowledge a write whose worker is lost."""

    async def succeed(pool: Pool, script: str, partition: bytes) -> None:
        with suppress(EngineUnavailableError):
            await _run(pool, script, partition)

    replace_attributes(Pool, run=succeed)


def failed_read_is_empty() -> None:
    """Answer that there is nothing where a shard cannot be reached."""

    async def empty(
        pool: Pool,
        statement: str,
        *arguments: object,
        reads: bool = False,
        partition: bytes | None = None,
        everywhere: bool = False,
    ) -> list[asyncpg.Record]:
        try:
            return await _fetch(pool, statement, *arguments, reads=reads, partition=partition, everywhere=everywhere)
        except EngineUnavailableError:
            if partition is None or not reads:
                raise
            return []

    async def each_empty(
        pool: Pool, statement: str, arguments: Sequence[Sequence[object]], *, partition: bytes
    ) -> list[asyncpg.Record]:
        try:
            return await _fetch_each(pool, statement, arguments, partition=partition)
        except EngineUnavailableError:
            return []

    replace_attributes(Pool, fetch=empty, fetch_each=each_empty)


def statements_apart() -> None:
    """Commit each statement of a script by itself."""

    async def apart(pool: Pool, script: str, partition: bytes) -> None:
        for statement in script.split(";\n"):
            await _run(pool, statement, partition)

    replace_attributes(Pool, run=apart)


def version_unchecked() -> None:
    """Write what was decided on a version of the partition that may be an old one, such as a kept one."""
    advance = sql_scripts._advance

    def anyway(place: PartitionAddress, version: int, statement: str, known: int) -> str:
        return advance(place, version, "advance_below", 1 << 62 if statement == "advance_from" else known)

    vars(sql_scripts)["_advance"] = anyway


def drop_forgotten() -> None:
    """Close a dropped space in this process only."""

    async def forget(drops: DroppedSpaceCache, space: int) -> None:
        drops.closed.add(space)
        drops._mine.add(space)

    replace_attributes(DroppedSpaceCache, drop=forget)


MUTATIONS: dict[str, Callable[[], None]] = {
    f"citus-{each.__name__.replace('_', '-')}": each
    for each in (
        answer_before_commit,
        failed_write_succeeds,
        failed_read_is_empty,
        statements_apart,
        version_unchecked,
        drop_forgotten,
    )
}
