"""The promises of content stores, for each of them."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from lazulite.engine.content.contract import (
    WINDOW_BYTES,
    ContentDamagedError,
    ContentId,
    ContentMissingError,
    ContentStore,
    Owner,
)
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.contract import SpaceDroppedError

OWNER = Owner(5, "a/b ü")
LENGTHS = (0, 1, WINDOW_BYTES - 1, WINDOW_BYTES, WINDOW_BYTES + 1, 9 * WINDOW_BYTES + 7)


@pytest.fixture(name="store", params=["files", "memory"])
async def _store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContentStore]:
    store: ContentStore = ContentFiles(tmp_path / "content") if request.param == "files" else ContentMemory()
    yield store
    await store.close()


def sample(length: int) -> bytes:
    """Return bytes that differ from window to window."""
    return b"".join(index.to_bytes(8, "big") for index in range(length // 8 + 1))[:length]


async def put(store: ContentStore, data: bytes, owner: Owner = OWNER, chunk: int = 100_000) -> ContentId:
    writer = await store.create(owner)
    for start in range(0, len(data), chunk):
        await writer.write(data[start : start + chunk])
    assert writer.length == len(data)
    return await writer.seal()


async def get(store: ContentStore, content: ContentId, start: int, stop: int) -> bytes:
    async with aclosing(store.read(content, start, stop)) as pieces:
        found = [piece async for piece in pieces]
    assert all(0 < len(piece) <= WINDOW_BYTES for piece in found)
    return b"".join(found)


@pytest.mark.parametrize("chunk", [65_536, WINDOW_BYTES, 1_000_001])
@pytest.mark.parametrize("length", LENGTHS)
async def test_what_was_written_is_read(store: ContentStore, length: int, chunk: int) -> None:
    data = sample(length)
    content = await put(store, data, chunk=chunk)
    assert await get(store, content, 0, length) == data


@pytest.mark.parametrize("start", [0, 1, WINDOW_BYTES - 1, WINDOW_BYTES, 5 * WINDOW_BYTES + 3])
@pytest.mark.parametrize("length", [0, 1, WINDOW_BYTES, 4 * WINDOW_BYTES + 1])
async def test_any_range_is_read(store: ContentStore, start: int, length: int) -> None:
    data = sample(LENGTHS[-1])
    content = await put(store, data)
    stop = min(start + length, len(data))
    assert await get(store, content, start, stop) == data[start:stop]


async def test_a_range_beyond_the_end_is_damage(store: ContentStore) -> None:
    content = await put(store, b"abc")
    with pytest.raises(ContentDamagedError):
        await get(store, content, 0, 4)


async def test_contents_have_names_of_their_own(store: ContentStore) -> None:
    contents = [await put(store, bytes([index])) for index in range(20)]
    assert len(set(contents)) == 20
    assert [await get(store, content, 0, 1) for content in contents] == [bytes([index]) for index in range(20)]


async def test_a_deleted_content_is_missing_and_its_name_not_used_again(store: ContentStore) -> None:
    first = await put(store, b"a")
    store.keep(first)
    await store.delete([first])
    await store.delete([first])
    with pytest.raises(ContentMissingError):
        await get(store, first, 0, 1)
    assert await put(store, b"b") != first


async def test_a_discarded_content_leaves_the_others(store: ContentStore) -> None:
    kept = await put(store, b"kept")
    writer = await store.create(OWNER)
    await writer.write(sample(3 * WINDOW_BYTES))
    await writer.discard()
    assert await get(store, kept, 0, 4) == b"kept"


async def test_discarding_a_sealed_content_does_nothing(store: ContentStore) -> None:
    writer = await store.create(OWNER)
    await writer.write(b"x")
    content = await writer.seal()
    await writer.discard()
    assert await get(store, content, 0, 1) == b"x"


async def test_a_dropped_space_is_empty_for_ever(store: ContentStore) -> None:
    content, other = await put(store, b"x"), await put(store, b"y", Owner(6, ""))
    await store.drop(5)
    await store.drop(5)
    with pytest.raises(ContentMissingError):
        await get(store, content, 0, 1)
    with pytest.raises(SpaceDroppedError):
        await store.create(OWNER)
    assert await get(store, other, 0, 1) == b"y"


async def test_a_content_is_not_sealed_after_its_space_was_dropped(store: ContentStore) -> None:
    writer = await store.create(OWNER)
    await writer.write(b"x")
    await store.drop(5)
    with pytest.raises(SpaceDroppedError):
        await writer.seal()
    await writer.discard()


async def test_a_reader_may_leave_in_the_middle(store: ContentStore) -> None:
    content = await put(store, sample(LENGTHS[-1]))
    async with aclosing(store.read(content, 0, LENGTHS[-1])) as pieces:
        assert len(await anext(pieces)) == WINDOW_BYTES
    assert await get(store, content, 0, 1) == sample(1)
