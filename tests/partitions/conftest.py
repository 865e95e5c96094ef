"""Engines for what partitions keep in a store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lazulite.engine.contract import Engine
from lazulite.protocol.clock import system_clock
from tests.engine.conftest import ENGINES, EngineFactory
from tests.fuzz.memory import MemoryEngine


@pytest.fixture(params=ENGINES)
def engine_factory(request: pytest.FixtureRequest, tmp_path: Path) -> EngineFactory:
    return ENGINES[request.param](tmp_path)


@pytest.fixture
async def engine(engine_factory: EngineFactory) -> AsyncIterator[Engine]:
    """Each engine of the contract."""
    found = engine_factory.open(system_clock)
    yield found
    await found.close()


@pytest.fixture
async def memory() -> AsyncIterator[Engine]:
    """An engine in a dictionary."""
    found = MemoryEngine(system_clock)
    yield found
    await found.close()
