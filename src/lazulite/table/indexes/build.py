"""Declaring, building and dropping indexes, while requests go on.

An index is declared, and each process keeps its entries. Once no process can write without them, entries that a process
without the index has left behind are removed. The entries of all rows are added, each with a commit that reads the row:
so an entry is added to the row as it is then. Then queries use it. A query stops using an index before its entries are
given up. An index that is built again serves queries until its successor does.

Invariants: queries use an index only while it has the entry of each row. A build that was interrupted goes on where it
was, in whatever process. Entries are added in bounded steps, and requests have the event loop between two of them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from itertools import groupby
from typing import TypeVar

from lazulite.engine.commit import Commit, CompanionWrite, Decision, Values
from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.engine.store_format import raise_format
from lazulite.records.spaces import TABLES
from lazulite.table.catalog import Catalog, Table, row_of
from lazulite.table.indexes.build_notes import BuildProgress, forget_build, note_build, read_build
from lazulite.table.indexes.definition import (
    ACCOUNT_INDEXES_MAX,
    DeclarationError,
    Index,
    Indexes,
    Scope,
    State,
    require_declared,
)
from lazulite.table.indexes.encoding import entity_of
from lazulite.table.indexes.entries import IndexMaintenance, index_format
from lazulite.table.model.property_reader import literal_reader

T = TypeVar("T")

_ROWS_OF_A_COMMIT = 100
_COMMITS_AT_ONCE = 32
_ENTITIES_SAMPLED = 1000
_NEWEST = 1 << 62
"""The version of indexes of a commit that no fence rejects."""
_NOTED_ROWS = 10_000
"""Rows that may be gone through again after an interruption."""

Invalidated = Callable[[int, list[Key]], AbstractAsyncContextManager[None]]
"""Keeps rows of a space out of all caches while they are changed."""
Settle = Callable[[int, int], Awaitable[None]]
"""Returns once no process writes to a space with an older version of its table's indexes: takes both."""


class IndexBuilder:
    """Declares, builds and drops the indexes of tables.

    Args:
        engine: holds the rows.
        invalidated: see `Invalidated`.
        settle: see `Settle`.
    """

    def __init__(self, engine: Engine, invalidated: Invalidated, settle: Settle) -> None:
        self._engine = engine
        self._catalog = Catalog(engine)
        self._invalidated = invalidated
        self._settle = settle

    async def indexes(self, account: str, table: str) -> Indexes:
        """Return the indexes of a table.

        Raises:
            DeclarationError: there is no such table.
        """
        return (await self._table(account, table)).indexes

    async def property_types(self, account: str, table: str) -> Mapping[str, Mapping[str, int]]:
        """Return the properties that have indexes, and how many of the first entities have each of their types.

        Raises:
            DeclarationError: there is no such table.
        """
        found = await self._table(account, table)
        readers = {name: literal_reader(name) for index in found.indexes.declared for name in index.on}
        types: dict[str, Counter[str]] = {name: Counter() for name in readers}
        sample = self._engine.scan(found.space, [KeyRange(("", ""), None)], _ENTITIES_SAMPLED)
        async with aclosing(sample) as parts:
            async for part in parts:
                for name, read in readers.items():
                    literals = map(read, part.values)
                    types[name].update(literal.edm.name for literal in literals if literal is not None)
        return types

    async def create(self, account: str, table: str, name: str, on: Sequence[str], scope: Scope) -> Index:
        """Declare an index. It is to be built, which waits until every process knows of it.

        Raises:
            DeclarationError: it is not allowed, or there is no such table.
        """
        await self._table(account, table)
        others = [len(each.indexes.current) async for each in self._catalog.list(account, "")]
        if sum(others) >= ACCOUNT_INDEXES_MAX:
            raise DeclarationError(f"account {account} has {ACCOUNT_INDEXES_MAX} indexes, which is the most")
        await raise_format(self._engine)
        async with self._changing(account, table):
            changed = await self._catalog.declare_index(account, table, name, on, scope)
        return _found(changed, name)

    async def replace(self, account: str, table: str, name: str) -> None:
        """Declare the successor of an index, which is to be built. One that is not built yet is dropped.

        Raises:
            DeclarationError: there is no such index.
        """
        found = await self._table(account, table)
        index = _found(found, name)
        before = found.indexes.before(index)
        if before:
            await self._drop(account, table, before if index.state is State.READY else [index])
        async with self._changing(account, table):
            kept = index if index.state is State.READY or not before else before[0]
            await self._catalog.declare_successor(account, table, kept)

    async def build(self, account: str, table: str, name: str) -> AsyncGenerator[BuildProgress, None]:
        """Build an index, or go on with that, and yield how far it has come. At the end queries use it.

        Raises:
            DeclarationError: there is no such index, or it was dropped meanwhile.
        """
        found = await self._table(account, table)
        index = _found(found, name)
        before = found.indexes.before(index)
        if index.state is not State.READY:
            async with aclosing(self._fill(account, table, index)) as steps:
                async for step in steps:
                    yield step
            await forget_build(self._engine, account, index.space)
        elif not before:
            return
        async with self._changing(account, table):
            changed = await self._catalog.use_index(account, table, index)
        if before:
            await self._settle(changed.space, changed.indexes.version)
            await self._drop(account, table, before)

    async def unfinished(self) -> AsyncGenerator[tuple[str, str, str], None]:
        """Yield the account, the table and the name of each index that is not built, or has not replaced another."""
        async with aclosing(self._catalog.with_indexes()) as tables:
            found = [each async for each in tables]
        for account, table in found:
            for name in dict.fromkeys(index.name for index in table.indexes.declared if index.state is not State.READY):
                yield account, table.name, name

    async def drop(self, account: str, table: str, name: str) -> None:
        """Drop an index, and give up its entries.

        Raises:
            DeclarationError: there is no such index.
        """
        found = await self._table(account, table)
        _found(found, name)
        for index in found.indexes.named(name):
            await self._set_state(account, table, index, State.WRITE_ONLY)
        await self._drop(account, table, found.indexes.named(name))

    async def _drop(self, account: str, table: str, indexes: Sequence[Index]) -> None:
        """Drop indexes that no query uses."""
        async with self._changing(account, table):
            changed = await self._catalog.drop_indexes(account, table, indexes)
        await self._settle(changed.space, changed.indexes.version)

    async def _set_state(self, account: str, table: str, index: Index, state: State) -> None:
        async with self._changing(account, table):
            changed = await self._catalog.set_index_state(account, table, index, state)
        await self._settle(changed.space, changed.indexes.version)

    def _changing(self, account: str, table: str) -> AbstractAsyncContextManager[None]:
        return self._invalidated(TABLES, [(account, row_of(table))])

    async def _table(self, account: str, name: str) -> Table:
        table = await self._catalog.read(account, name) if name.isascii() else None
        if table is None:
            raise DeclarationError(f"account {account} has no table {name[:64]}")
        return table

    async def _fill(self, account: str, table: str, index: Index) -> AsyncGenerator[BuildProgress, None]:
        """Give an index the entries of all rows, and yield how far that had come, and has, once it is noted."""
        await self._set_state(account, table, index, State.BUILDING)
        progress = await read_build(self._engine, account, row_of(table), index.space)
        yield progress
        if progress.after is None:
            await self._remove_stale(account, table, index)
        async with aclosing(self._filled(account, table, index, progress)) as steps:
            async for step in steps:
                await note_build(self._engine, account, row_of(table), index.space, step)
                yield step

    async def _filled(
        self, account: str, table: str, index: Index, progress: BuildProgress
    ) -> AsyncGenerator[BuildProgress, None]:
        """Add the entries of all rows, and yield how far that has come."""
        space = (await self._table(account, table)).space
        maintenance = IndexMaintenance([index])
        rows, after = progress
        noted = rows
        start = ("", "") if after is None else (after[0], f"{after[1]}\0")
        limit = asyncio.Semaphore(_COMMITS_AT_ONCE)
        async with aclosing(self._engine.scan(space, [KeyRange(start, None)], keys_only=True)) as slices:
            async for part in slices:
                keys = list(zip(*part.columns(), strict=True))
                await self._commit_all(partial(_adding, maintenance), space, keys, limit)
                if keys:
                    rows, after = rows + len(keys), keys[-1]
                if rows - noted >= _NOTED_ROWS:
                    noted = rows
                    require_declared((await self._table(account, table)).indexes, index)
                    yield BuildProgress(rows, after)
        yield BuildProgress(rows, after)

    async def _remove_stale(self, account: str, table: str, index: Index) -> None:
        """Remove entries of rows that were changed since, by a process that did not know of the index yet."""
        space = (await self._table(account, table)).space
        limit = asyncio.Semaphore(_COMMITS_AT_ONCE)
        in_table = index.scope is Scope.TABLE
        async with aclosing(self._engine.scan(index.space, [KeyRange(("", ""), None)], keys_only=True)) as slices:
            async for part in slices:
                entries = list(zip(*part.columns(), strict=True))
                entities = [entity_of(entry, len(index.on), in_table=in_table) for entry in entries]
                named = [(key[0], (key[1], entry)) for key, entry in zip(entities, entries, strict=True)]
                await self._commit_all(partial(_removing, index), space, named, limit)

    async def _commit_all(
        self,
        make: Callable[[str, Sequence[T]], Commit[None]],
        space: int,
        items: Sequence[tuple[str, T]],
        limit: asyncio.Semaphore,
    ) -> None:
        """Make commits of one partition each, some at a time.

        Args:
            make: returns a commit, given its partition and what it is about.
            space: of the commits.
            items: what they are about, each with its partition.
            limit: bounds the commits at a time.
        """
        try:
            async with asyncio.TaskGroup() as commits:
                for partition, of_partition in groupby(items, lambda item: item[0]):
                    about = [each for _, each in of_partition]
                    for at in range(0, len(about), _ROWS_OF_A_COMMIT):
                        await limit.acquire()
                        commit = self._engine.commit(
                            space, partition, make(partition, about[at : at + _ROWS_OF_A_COMMIT])
                        )
                        commits.create_task(commit).add_done_callback(lambda _: limit.release())
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None  # As one commit would.


def _adding(maintenance: IndexMaintenance, partition: str, rows: Sequence[str]) -> Commit[None]:
    """Return a commit that adds the entries of rows as they are then."""
    absent = dict.fromkeys(rows)

    def decide(values: Values, _: int) -> Decision[None]:
        present = dict(zip(rows, values, strict=True))
        # A write may have added an entry already, so what it was is to be read.
        return Decision(
            {}, None, [each._replace(before=True) for each in maintenance.changes(partition, absent, present)]
        )

    return Commit(rows, decide, fence=_NEWEST)


def _removing(index: Index, partition: str, named: Sequence[tuple[str, Key]]) -> Commit[None]:
    """Return a commit that removes the entries which rows do not have then, given the rows and the entries."""
    rows = list(dict.fromkeys(row for row, _ in named))
    entry_of = index_format(index).entry

    def decide(values: Values, _: int) -> Decision[None]:
        present = {row: value for row, value in zip(rows, values, strict=True) if value is not None}
        kept = {entry_of((partition, row), value) for row, value in present.items()}
        return Decision({}, None, [CompanionWrite(index.space, entry, None) for _, entry in named if entry not in kept])

    return Commit(rows, decide, fence=_NEWEST)


def _found(table: Table, name: str) -> Index:
    index = table.indexes.find(name)
    if index is None:
        raise DeclarationError(f"the table {table.name} has no index {name}")
    return index
