from collections.abc import AsyncIterator

import pytest

from lazulite.engine.contract import Engine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.service.properties import CorsRule, Logging, PropertiesStore, PropertiesUpdate, ServiceProperties


@pytest.fixture(name="engine")
async def _engine() -> AsyncIterator[Engine]:
    engine = RocksEngine.open(None, system_clock)
    yield engine
    await engine.close()


async def test_roots_are_merged_kept_and_apart_by_account_and_service(engine: Engine) -> None:
    store = PropertiesStore(engine, "table")
    rule = CorsRule(("GET",), ("*",))
    assert await store.get("a") == ServiceProperties()
    await store.update("a", PropertiesUpdate(cors=(rule,)))
    await store.update("a", PropertiesUpdate(logging=Logging(read=True)))
    expected = ServiceProperties(logging=Logging(read=True), cors=(rule,))
    assert await store.get("a") == expected
    assert await PropertiesStore(engine, "table").get("a") == expected
    assert await store.get("b") == ServiceProperties()
    assert await PropertiesStore(engine, "queue").get("a") == ServiceProperties()
