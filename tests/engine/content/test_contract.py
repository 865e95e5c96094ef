"""The promises of content stores, for each of them."""

import marshal
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from lazulite.engine.commit import Plain
from lazulite.engine.content.contract import (
    WINDOW_BYTES,
    Claim,
    ContentDamagedError,
    ContentId,
    ContentMissingError,
    ContentStore,
    Owner,
)
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.content.remote import RemoteContents, content_procedures
from lazulite.engine.contract import SpaceDroppedError
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.remote.messages import Procedure
from lazulite.protocol.clock import system_clock
from tests.postgres.server import empty_database

OWNER = Owner(5, "a/b ü")
LENGTHS = (0, 1, WINDOW_BYTES - 1, WINDOW_BYTES, WINDOW_BYTES + 1, 9 * WINDOW_BYTES + 7)


@asynccontextmanager
async def files(directory: Path) -> AsyncIterator[ContentStore]:
    yield ContentFiles(directory / "content")


@asynccontextmanager
async def memory(directory: Path) -> AsyncIterator[ContentStore]:
    yield ContentMemory()


@asynccontextmanager
async def postgres(directory: Path) -> AsyncIterator[ContentStore]:
    engine = PostgresEngine(PostgresSettings(dsn=empty_database()), system_clock)
    yield await engine.contents()
    await engine.close()


class DirectPrimary:
    """Runs procedures at once, with what a channel makes of their arguments and results."""

    def __init__(self, procedures: Mapping[str, Procedure]) -> None:
        self._procedures = procedures

    async def call(self, procedure: str, *arguments: Plain) -> Plain:
        return sent(await self._procedures[procedure](*sent(arguments)))


def sent(values: Plain) -> Plain:
    return marshal.loads(marshal.dumps(values))


@asynccontextmanager
async def remote(directory: Path) -> AsyncIterator[ContentStore]:
    yield RemoteContents(DirectPrimary(content_procedures(ContentMemory())))


STORES = {"files": files, "memory": memory, "remote": remote, "postgres": postgres}


@pytest.fixture(name="store", params=STORES)
async def _store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContentStore]:
    async with STORES[request.param](tmp_path) as store:
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


@pytest.mark.parametrize("length", [0, 1, 2 * WINDOW_BYTES + 1])
@pytest.mark.parametrize("owner", [OWNER, Owner(5, "other"), Owner(6, "")])
async def test_a_copy_has_the_bytes_and_lives_on_its_own(store: ContentStore, owner: Owner, length: int) -> None:
    first = await put(store, sample(length))
    second = await store.copy(first, owner)
    third = await store.copy(second, OWNER)
    assert len({first, second, third}) == 3
    assert second.space == owner.space
    for gone in (first, second):
        await store.delete([gone])
    assert await get(store, third, 0, length) == sample(length)
    if length:
        with pytest.raises(ContentMissingError):
            await get(store, second, 0, 1)


@pytest.mark.parametrize("wrong", [Claim("another"), Claim(OWNER.partition, 4), Claim("another", 3)])
async def test_a_content_is_the_one_of_its_row(store: ContentStore, wrong: Claim) -> None:
    content = await put(store, b"abc")
    for claim in (None, Claim(OWNER.partition), Claim(OWNER.partition, 3)):
        assert await store.length(content, claim) == 3
        copy = await store.copy(content, Owner(6, "copy"), claim)
        assert await store.length(copy, Claim("copy", 3)) == 3
        async with aclosing(store.read(content, 0, 3, claim)) as pieces:
            assert b"".join([bytes(piece) async for piece in pieces]) == b"abc"
    with pytest.raises(ContentDamagedError):
        await store.length(content, wrong)
    with pytest.raises(ContentDamagedError):
        await store.copy(content, Owner(6, "copy"), wrong)


async def test_what_is_missing_is_not_copied(store: ContentStore) -> None:
    content = await put(store, b"a")
    await store.delete([content])
    with pytest.raises(ContentMissingError):
        await store.copy(content, OWNER)


async def test_nothing_is_copied_to_a_dropped_space(store: ContentStore) -> None:
    content = await put(store, b"a")
    await store.drop(6)
    with pytest.raises(SpaceDroppedError):
        await store.copy(content, Owner(6, "a"))


@pytest.mark.parametrize("length", LENGTHS)
async def test_a_content_has_a_length(store: ContentStore, length: int) -> None:
    assert await store.length(await put(store, sample(length))) == length


async def test_what_is_missing_or_unsealed_has_no_length(store: ContentStore) -> None:
    content = await put(store, b"a")
    await store.delete([content])
    with pytest.raises(ContentMissingError):
        await store.length(content)


@pytest.mark.parametrize("number", [0, 7, 4096 * 1024 * 3 + 5, 2**61 + 1])
async def test_a_content_is_written_under_a_number_that_it_has_already(store: ContentStore, number: int) -> None:
    content = ContentId(OWNER.space, number)
    for attempt in (b"first", b"second!"):
        begun = await store.create(OWNER, number)
        await begun.write(b"interrupted")
        await begun.discard()
        writer = await store.create(OWNER, number)
        await writer.write(attempt)
        assert await writer.seal() == content
        store.keep(content)
        assert await get(store, content, 0, await store.length(content)) == attempt
    others = [await put(store, b"x") for _ in range(3)]
    assert len({content, *others}) == 4
    assert await get(store, content, 0, 7) == b"second!"


async def no_references(_: Owner) -> Collection[ContentId]:
    """Return what the rows refer to before the commit of an upload: nothing."""
    return ()


@pytest.mark.parametrize("first", [False, True], ids=["later sweeps", "the first sweep, too"])
async def test_a_sweep_at_any_moment_leaves_what_an_upload_is_about_to_use(store: ContentStore, first: bool) -> None:
    data = sample(2 * WINDOW_BYTES + 1)

    async def sweep() -> None:
        for _ in range(3):  # A later one has what the one before has found.
            assert await store.sweep(no_references) == 0

    if not first:
        await sweep()
    writer = await store.create(OWNER)
    for start in range(0, len(data), WINDOW_BYTES):
        await writer.write(data[start : start + WINDOW_BYTES])
        await sweep()
    content = await writer.seal()
    await sweep()
    copy = await store.copy(content, Owner(6, "copy"))
    await sweep()
    for each in (content, copy):
        store.keep(each)
        assert await get(store, each, 0, len(data)) == data
