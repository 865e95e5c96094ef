"""The commands for declared indexes: by the process that has the store, beside its requests.

A build goes on without a client that follows it. The next process continues the one that this process could not end.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeVar

from lazulite.app.account_data import Invalidated
from lazulite.app.commands import (
    INDEX_BUILD,
    INDEX_CREATE,
    INDEX_DROP,
    INDEX_EXPLAIN,
    INDEX_EXPORT,
    INDEX_LIST,
    ExplainArguments,
    IndexArguments,
    IndexDeclaration,
    TableArguments,
)
from lazulite.app.stores import CACHE_TTL_SECONDS
from lazulite.app.traffic import account_of
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.control.channel import Channel
from lazulite.control.command import ControlError, Json
from lazulite.engine.contract import Engine, EngineError
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.errors import ServiceError
from lazulite.table.indexes.build import IndexBuilder, Settle
from lazulite.table.indexes.build_notes import BuildCounts, BuildProgress
from lazulite.table.indexes.definition import DeclarationError, Index, Scope
from lazulite.table.indexes.planner import Reason, access_by, plan_indexes
from lazulite.table.query.filter import parse, query_class

T = TypeVar("T")

DATABASE_SETTLE_SECONDS = CACHE_TTL_SECONDS + 1.5 * PostgresSettings(dsn="").statement_seconds
"""How long a process of a database may still write with what it knew of a table: until its cache of the table is read
again, and a statement has ended."""


def settle_of(engine: Engine, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Settle:
    """Return what waits until no process writes with older indexes, given the engine of the store."""

    async def settle(space: int, version: int) -> None:
        if isinstance(engine, RocksEngine):
            engine.fence(space, version)
        else:
            await sleep(DATABASE_SETTLE_SECONDS)

    return settle


def _is_cluster(engine: Engine) -> bool:
    if isinstance(engine, RocksEngine):
        return False
    from lazulite.engine.postgres.engine import PostgresEngine  # noqa: PLC0415 - it needs an extra

    return isinstance(engine, PostgresEngine) and engine.is_cluster


class _Build:
    """A build that goes on in the background."""

    def __init__(self, work: AsyncGenerator[BuildProgress, None], counts: BuildCounts) -> None:
        self.progress = BuildProgress()
        self._counts = counts
        self._ended = False
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._run(work))

    async def _run(self, work: AsyncGenerator[BuildProgress, None]) -> None:
        counts = self._counts
        counts.running += 1
        noted: int | None = None  # The first step is what an earlier process has done.
        try:
            async for progress in work:
                if noted is not None:
                    counts.rows += progress.rows - noted
                self.progress, noted = progress, progress.rows
                self._tell()
            counts.finished += 1
        except Exception:
            counts.failed += 1
            raise
        finally:
            counts.running -= 1
            await work.aclose()
            self._ended = True
            self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def follow(self) -> AsyncGenerator[int, None]:
        """Yield how many rows were gone through, as that grows, until the build ends.

        Raises:
            DeclarationError: the build was ended.
            Exception: whatever else ended it.
        """
        shown = -1
        while not self._ended:
            news = self._news
            if self.progress.rows > shown:
                shown = self.progress.rows
                yield shown
            await news.wait()
        if self.progress.rows > shown:
            yield self.progress.rows
        await asyncio.wait([self.task])
        if self.task.cancelled():
            raise DeclarationError("another command has ended the build, or the server stops")
        self.task.result()


class IndexCommands:
    """Declares, builds, lists, explains and drops indexes.

    Args:
        engine: of the store.
        directory: the accounts.
        invalidated: keeps rows out of all caches while they are changed.
        settle: see `table.indexes.build`.
        counts: of the builds; None: they are not kept.
    """

    def __init__(
        self,
        engine: Engine,
        directory: AccountDirectory,
        invalidated: Invalidated,
        settle: Settle | None = None,
        counts: BuildCounts | None = None,
    ) -> None:
        self._engine = engine
        self._builder = IndexBuilder(engine, invalidated, settle or settle_of(engine))
        self._directory = directory
        self._counts = counts or BuildCounts()
        self._builds: dict[tuple[str, str, str], _Build] = {}

    def register(self, channel: Channel) -> None:
        """Have the commands run in this process."""
        channel.register(INDEX_LIST, self.list)
        channel.register(INDEX_CREATE, self.create)
        channel.register(INDEX_BUILD, self.build)
        channel.register(INDEX_DROP, self.drop)
        channel.register(INDEX_EXPLAIN, self.explain)
        channel.register(INDEX_EXPORT, self.export)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Continue the builds that were interrupted, and end all of them at last."""
        with suppress(EngineError):  # They are continued by the next process that starts.
            async for account, table, name in self._builder.unfinished():
                self._begin(account, table, name)
        try:
            yield
        finally:
            for build in self._builds.values():
                build.task.cancel()
            await asyncio.gather(*(build.task for build in self._builds.values()), return_exceptions=True)

    async def list(self, of: TableArguments) -> AsyncGenerator[Json, None]:
        """Yield an object for each index of a table."""
        account = account_of(self._directory, of.account)
        for index in (await _told(self._builder.indexes(account, of.table))).current:
            build = self._builds.get((account, of.table.lower(), index.name))
            rows = None if build is None or build.task.done() else build.progress.rows
            yield {
                "name": index.name,
                "on": list(index.on),
                "scope": index.scope.value,
                "state": index.state.value,
                "rows": rows,
            }

    async def create(self, of: IndexDeclaration) -> AsyncGenerator[Json, None]:
        """Declare an index, and build it; yield how many rows were gone through, as that grows."""
        account = account_of(self._directory, of.account)
        on = [of.on, of.and_on] if of.and_on else [of.on]
        if of.scope == Scope.TABLE.value and _is_cluster(self._engine):
            raise ControlError(
                "bad-index", "on Citus an index has the scope of a partition: a commit stays on one node"
            )
        index = await _told(self._builder.create(account, of.table, of.name, on, Scope(of.scope)))
        async for rows in self._follow(account, of.table, index.name):
            yield rows

    async def build(self, of: IndexArguments) -> AsyncGenerator[Json, None]:
        """Go on with a build, or build a successor, which queries use once it is ready; yield as `create`."""
        account = account_of(self._directory, of.account)
        index = await self._index(account, of)
        if of.again:
            await self._end(account, of.table, index.name)
            await _told(self._builder.replace(account, of.table, index.name))
        async for rows in self._follow(account, of.table, index.name):
            yield rows

    async def drop(self, of: IndexArguments) -> AsyncGenerator[Json, None]:
        """Drop an index."""
        account = account_of(self._directory, of.account)
        index = await self._index(account, of)
        await self._end(account, of.table, index.name)
        await _told(self._builder.drop(account, of.table, index.name))
        yield {"dropped": index.name}

    async def explain(self, of: ExplainArguments) -> AsyncGenerator[Json, None]:
        """Yield how a query is served: its class, the indexes that it uses, and for each other one why not."""
        indexes = (await _told(self._builder.indexes(account_of(self._directory, of.account), of.table))).current
        try:
            tree = parse(of.filter)
        except ServiceError as error:
            raise ControlError("bad-filter", error.message or error.code) from None
        plan = plan_indexes(tree, indexes)
        used = {} if plan is None else {access.index.name: access for access in plan.accesses}
        yield {"class": query_class(tree), "uses": list(used)}
        for index in indexes:
            access = access_by(tree, index)
            if isinstance(access, Reason):
                yield {"index": index.name, "used": False, "why": access.value}
            else:
                count = len(access.ranges)
                entries = f"{count} {'range' if count == 1 else 'ranges'} of entries"
                why = f"{entries}, {'in' if access.is_ordered else 'not in'} order"
                if index.name not in used:
                    why = f"{' and '.join(used)} is preferred; this one has {why}"
                yield {"index": index.name, "used": index.name in used, "why": why}

    async def export(self, of: TableArguments) -> AsyncGenerator[Json, None]:
        """Yield an object for each index of a table, with the types of its properties in some entities."""
        account = account_of(self._directory, of.account)
        indexes = (await _told(self._builder.indexes(account, of.table))).current
        types = await _told(self._builder.property_types(account, of.table))
        for index in indexes:
            of_index = {name: dict(types.get(name, {})) for name in index.on}
            yield {"name": index.name, "on": list(index.on), "scope": index.scope.value, "types": of_index}

    async def _index(self, account: str, of: IndexArguments) -> Index:
        found = (await _told(self._builder.indexes(account, of.table))).find(of.name)
        if found is None:
            raise ControlError("no-index", f"the table {of.table} has no index {of.name}")
        return found

    def _begin(self, account: str, table: str, name: str) -> _Build:
        build = self._builds.get((account, table.lower(), name))
        if build is None or build.task.done():
            work = self._builder.build(account, table, name)
            build = self._builds[account, table.lower(), name] = _Build(work, self._counts)
        return build

    async def _follow(self, account: str, table: str, name: str) -> AsyncGenerator[Json, None]:
        with _telling():
            async for rows in self._begin(account, table, name).follow():
                yield {"rows": rows}

    async def _end(self, account: str, table: str, name: str) -> None:
        build = self._builds.pop((account, table.lower(), name), None)
        if build is not None:
            build.task.cancel()
            await asyncio.wait([build.task])


async def _told(work: Coroutine[None, None, T]) -> T:
    with _telling():
        return await work


@contextmanager
def _telling() -> Iterator[None]:
    """Have clients told why an index cannot be declared, built or dropped: its table may be deleted meanwhile."""
    try:
        yield
    except DeclarationError as error:
        raise ControlError("bad-index", str(error)) from None
    except ServiceError as error:
        raise ControlError("bad-index", error.message or error.code) from None
