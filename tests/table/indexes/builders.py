from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.table.catalog import Catalog
from lazulite.table.indexes.build import IndexBuilder, Settle
from lazulite.table.indexes.definition import Scope
from lazulite.table.indexes.encoding import entity_of
from lazulite.table.indexes.entries import values_reader
from tests.table.client import ACCOUNT, Client


def builder_of(engine: Engine, client: Client, settle: Settle | None = None) -> IndexBuilder:
    """Return the builder of a process that has one service; without `settle`, it is the only process."""

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

    async def fence(space: int, version: int) -> None:
        if isinstance(engine, RocksEngine):
            engine.fence(space, version)

    return IndexBuilder(engine, invalidated, settle or fence)


async def check_entries(engine: Engine, name: str) -> None:
    """Compare the entries of each index of a table with its rows, in both directions."""
    table = await Catalog(engine).read(ACCOUNT, name)
    assert table is not None
    rows = await rows_of(engine, table.space)
    for index in table.indexes.declared:
        read = values_reader(index.on)
        in_table = index.scope is Scope.TABLE
        found = {}
        for key in await rows_of(engine, index.space):
            entity = entity_of(key, len(index.on), in_table=in_table)
            assert entity not in found
            found[entity] = key[0] if in_table else key[1].removesuffix(entity[1])
        assert found == {key: text for key, value in rows.items() if (text := read(value)) is not None}


async def rows_of(engine: Engine, space: int) -> Mapping[Key, bytes]:
    """Return all rows of a space."""
    return {
        part.key(index): value
        async for part in engine.scan(space, [KeyRange(("", ""), None)])
        for index, value in enumerate(part.values)
    }
