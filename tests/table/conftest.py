from collections.abc import AsyncIterator

import pytest

from lazulite.engine.contract import Engine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from tests.table.client import Client


@pytest.fixture(name="engine")
async def _engine() -> AsyncIterator[Engine]:
    engine = RocksEngine.open(None, system_clock)
    yield engine
    await engine.close()


@pytest.fixture(name="client")
async def _client(engine: Engine) -> Client:
    return Client(engine)
