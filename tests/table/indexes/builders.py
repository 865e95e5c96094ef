from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lazulite.engine.contract import Engine, Key
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.table.indexes.build import IndexBuilder
from tests.table.client import Client


def builder_of(engine: Engine, client: Client) -> IndexBuilder:
    """Return the builder of a process that has one service."""

    @asynccontextmanager
    async def invalidated(space: int, keys: list[Key]) -> AsyncIterator[None]:
        cache = client.service.invalidations[space]
        for key in keys:
            cache.begin_invalidation(key)
        try:
            yield
        finally:
            for key in keys:
                cache.end_invalidation(key)

    async def settle(space: int, version: int) -> None:
        if isinstance(engine, RocksEngine):
            engine.fence(space, version)

    return IndexBuilder(engine, invalidated, settle)
