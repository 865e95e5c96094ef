"""Memory stays bounded, whatever the length of a content."""

import tracemalloc
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from lazulite.engine.content.contract import ContentStore

from .test_contract import OWNER, STORES

LENGTH_MB, MEMORY_MB_MAX = 64, 16
CHUNK = bytes(1 << 16)


@pytest.fixture(name="store", params=["files", "postgres"])
async def _store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContentStore]:
    async with STORES[request.param](tmp_path) as store:
        yield store
        await store.close()


async def test_a_long_content_goes_through_in_windows(store: ContentStore) -> None:
    tracemalloc.start()
    try:
        content_writer = await store.create(OWNER)
        for _ in range((LENGTH_MB << 20) // len(CHUNK)):
            await content_writer.write(CHUNK)
        content = await content_writer.seal()
        read = 0
        async with aclosing(store.read(content, 0, content_writer.length)) as pieces:
            async for piece in pieces:
                read += len(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read == LENGTH_MB << 20
    assert peak < MEMORY_MB_MAX << 20
