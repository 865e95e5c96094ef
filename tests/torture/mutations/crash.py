"""Mutations that kill -9 must bring to light."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from rocksdict import WriteOptions

from lazulite.engine.commit import Commit, Decision, Needs, Values, put_rows
from lazulite.engine.rocksdb import database
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.group_commit import Bounds, CommitGroup, GroupCommit
from lazulite.engine.rocksdb.options import write_options
from lazulite.table.catalog import Catalog, Table
from tests.torture.mutations import replace_attributes

WRITTEN_AFTER_SECONDS = 0.02
"""A few commits on any machine, so that the first kills lose some."""

T = TypeVar("T")


def answer_from_memory() -> None:
    """Answer a commit, and show it to readers, as soon as it is decided; it is written and synced a moment later."""
    wait, flush = GroupCommit._wait, GroupCommit._flush_group

    def answered(commits: GroupCommit, group: CommitGroup) -> "asyncio.Future[None]":
        wait(commits, group)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def flushed_later(commits: GroupCommit) -> None:
        await asyncio.sleep(WRITTEN_AFTER_SECONDS)
        await flush(commits)

    def latest_within(commits: GroupCommit, ranges: Sequence[Bounds]) -> dict[bytes, bytes | None]:
        groups = [group for group in (commits._flushing, commits._open) if group is not None]
        changes = {key: value for group in groups for key, value in group.changes.items()}
        return {key: value for key, value in changes.items() if any(start <= key < end for start, end in ranges)}

    replace_attributes(
        GroupCommit,
        _wait=answered,
        _flush_group=flushed_later,
        durable=GroupCommit.latest,
        durable_within=latest_within,
    )


def write_halves() -> None:
    """Write a transaction in two commits, and answer after the second."""
    commit = RocksEngine.commit

    async def halves(engine: RocksEngine, space: int, partition: str, given: Commit[T]) -> T:
        rest: dict[str, bytes | None] = {}

        def first(current: Values, timestamp: int) -> Decision[T] | Needs[T]:
            decision = given.decide(current, timestamp)
            if isinstance(decision, Needs):
                return decision
            changes = list(decision.changes.items())
            half = (len(changes) + 1) // 2
            rest.update(changes[half:])
            return Decision(dict(changes[:half]), decision.result)

        result = await commit(engine, space, partition, replace(given, decide=first))
        if rest:
            await commit(engine, space, partition, put_rows(rest))
        return result

    replace_attributes(RocksEngine, commit=halves)


def forget_drops() -> None:
    """Delete a table in this process's memory only."""
    gone: dict[tuple[str, str], int] = {}
    get, create = Catalog.get, Catalog.create

    async def get_unless_gone(catalog: Catalog, account: str, name: str) -> Table | None:
        table = await get(catalog, account, name)
        return None if table is not None and gone.get((account, name.lower())) == table.space else table

    async def create_over(catalog: Catalog, account: str, name: str) -> Table:
        row = name.lower()
        if (account, row) in gone:
            await catalog._change(account, row, lambda _: Decision({row: None}, None))
            del gone[account, row]
        return await create(catalog, account, name)

    async def delete(catalog: Catalog, account: str, name: str) -> None:
        table = await catalog.require(account, name)
        gone[account, name.lower()] = table.space

    replace_attributes(Catalog, get=get_unless_gone, create=create_over, delete=delete)


def write_no_log() -> None:
    """Keep RocksDB from writing a log: what is not yet in a table is in memory only."""

    def without_log() -> WriteOptions:
        made = write_options()
        made.disable_wal = True  # type: ignore[method-assign, assignment]  # A property, whatever its stub says.
        return made

    vars(database)["write_options"] = without_log


MUTATIONS: dict[str, Callable[[], None]] = {
    "answer_from_memory": answer_from_memory,
    "write_halves": write_halves,
    "forget_drops": forget_drops,
    "write_no_log": write_no_log,
}
