"""Every engine that the contract's tests run against; a new one joins ENGINES and nothing else."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from lazulite.engine.contract import Clock, Engine
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from tests.engine.remote.over_channel import EngineOverChannel, replicated
from tests.fuzz.memory import MemoryEngine
from tests.postgres.server import empty_database

Open = Callable[[Clock], Engine]
"""Opens an engine, always at the same location."""


@dataclass(frozen=True)
class EngineFactory:
    """One kind of engine, at one location of its own."""

    open: Open
    keeps: bool
    """Whether closing and opening again finds the rows."""


def rocksdb_on_disk(directory: Path) -> EngineFactory:
    return EngineFactory(lambda clock: RocksEngine.open(directory / "store", clock), keeps=True)


def rocksdb_in_memory(directory: Path) -> EngineFactory:
    return EngineFactory(lambda clock: RocksEngine.open(None, clock), keeps=False)


def over_a_channel(directory: Path) -> EngineFactory:
    """What a worker process has. What outlives a restart is its primary's matter."""
    return EngineFactory(lambda clock: EngineOverChannel(RocksEngine.open(None, clock)), keeps=False)


def over_a_channel_with_a_replica(directory: Path) -> EngineFactory:
    """What a worker process of a store on disk has."""
    return EngineFactory(lambda clock: EngineOverChannel(*replicated(directory, clock)), keeps=True)


def dictionary(directory: Path) -> EngineFactory:
    """The one that the fuzzers run on."""
    return EngineFactory(MemoryEngine, keeps=False)


def postgres(directory: Path, *, scripts: bool | None = None) -> EngineFactory:
    """The PostgreSQL engine, on an empty database."""
    settings = PostgresSettings(dsn=empty_database(), scripts=scripts)
    return EngineFactory(lambda clock: PostgresEngine(settings, clock), keeps=True)


ENGINES: dict[str, Callable[[Path], EngineFactory]] = {
    "rocksdb-disk": rocksdb_on_disk,
    "rocksdb-memory": rocksdb_in_memory,
    "remote": over_a_channel,
    "remote-replica": over_a_channel_with_a_replica,
    "dictionary": dictionary,
    "postgres": postgres,
    "postgres-scripts": partial(postgres, scripts=True),
}
"""The last two are on the server that tests share: on Citus where the environment names a coordinator."""


@pytest.fixture(params=ENGINES, name="engine_factory")
def _engine_factory(request: pytest.FixtureRequest, tmp_path: Path) -> EngineFactory:
    return ENGINES[request.param](tmp_path)


@pytest.fixture(name="engine")
async def _engine(engine_factory: EngineFactory) -> AsyncIterator[Engine]:
    engine = engine_factory.open(system_clock)
    yield engine
    await engine.close()
