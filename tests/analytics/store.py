"""A store whose writes can fail, and processes that write metrics to it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Literal, TypeVar

from lazulite.analytics.exchange_buffer import AnalyticsCounts
from lazulite.analytics.metrics import MetricsCounter
from lazulite.analytics.metrics_upkeep import MetricsUpkeep
from lazulite.analytics.metrics_writer import MetricsWriter
from lazulite.engine.commit import Commit
from lazulite.engine.contract import Engine, EngineUnavailableError, KeyRange, Slice
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.service.properties import PropertiesStore, PropertiesUpdate, ServiceProperties
from tests.analytics.counted import START
from tests.table.client import ACCOUNT, Client

T = TypeVar("T")


class BrokenEngine:
    """An engine whose commits fail as a test says. What metrics use of an engine, on top of another one."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.commits = 0
        self.failing: dict[int, Literal["before", "after"]] = {}
        """The numbers of commits that fail, before or after they were made."""
        self.before_commit: Callable[[int], Awaitable[None]] | None = None
        """Is called with the space of each commit."""

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        return await self.engine.get(space, partition, row)

    def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Slice, None]:
        return self.engine.scan(space, ranges, limit, keys_only=keys_only)

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        self.commits += 1
        if self.before_commit is not None:
            await self.before_commit(space)
        how = self.failing.get(self.commits)
        if how == "before":
            raise EngineUnavailableError("not made, as a test asked for")
        result = await self.engine.commit(space, partition, commit)
        if how == "after":
            raise EngineUnavailableError("made, but a test asked for this")
        return result


class Store:
    """A store, the time, and the processes that use it.

    Args:
        engine: of the store; None: a new one in memory.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.now = START
        self.engine: Engine = RocksEngine.open(None, self.clock) if engine is None else engine
        self.accounts = {ACCOUNT}
        self.client = Client(self.engine)
        """Reads tables, as users do."""

    def clock(self) -> int:
        return self.now

    async def ask(self, properties: ServiceProperties, service: str = "blob", account: str = ACCOUNT) -> None:
        """Have an account ask for metrics."""
        update = PropertiesUpdate(hour_metrics=properties.hour_metrics, minute_metrics=properties.minute_metrics)
        await PropertiesStore(self.engine, service).update(account, update)

    def process(self, name: str) -> "Process":
        """Return a new process."""
        return Process(self, name, self.engine)


class Process:
    """One process."""

    def __init__(self, store: Store, name: str, engine: Engine) -> None:
        self.engine = BrokenEngine(engine)
        self.counts = AnalyticsCounts()
        self.counter = MetricsCounter(self.counts)
        has_account = store.accounts.__contains__
        broken: Engine = self.engine  # type: ignore[assignment]  # the rest of an engine is not used
        self.writer = MetricsWriter(broken, self.counter, store.clock, name, has_account, self.counts)
        self.upkeep = MetricsUpkeep(broken, self.writer, store.clock, name, has_account)
