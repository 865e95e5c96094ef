"""Garbage is deleted, and nothing else; a crash at any step only delays it."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

import pytest

from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.block import Block, write_blocks
from lazulite.blob.model.references import contents_of_row
from lazulite.blob.model.retention import Retention, delete_current, replace_blob
from lazulite.blob.model.rows import list_row, upload_rows
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.storage import garbage
from lazulite.blob.storage.garbage import Garbage
from lazulite.blob.storage.partitions import Partitions
from lazulite.engine.content.contract import ContentId, ContentMissingError, Owner
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.contract import EngineUnavailableError, KeyRange
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import TICKS_PER_DAY, system_clock
from lazulite.records.spaces import UNTIDY_CONTAINERS

SPACE, NAME = 2000, "blob"
BLOB = Blob(type=BlobType.BLOCK, modified=1, created=1)


class World:
    """A partition and what it refers to."""

    def __init__(self) -> None:
        self.engine = RocksEngine.open(None, system_clock)
        self.contents = ContentMemory()
        self.partitions = Partitions(self.engine, system_clock)
        self.days = 0
        self.garbage = self.process()

    def process(self) -> Garbage:
        return Garbage(self.engine, self.contents, self.partitions, self._clock)

    def _clock(self) -> int:
        return system_clock() + self.days * TICKS_PER_DAY

    async def untidy(self) -> list[str]:
        found: list[str] = []
        async for part in self.engine.scan(UNTIDY_CONTAINERS, [KeyRange(("", ""), None)]):
            found += [part.key(index)[1] for index in range(len(part.values))]
        return found

    async def content(self, data: bytes) -> int:
        writer = await self.contents.create(Owner(SPACE, NAME))
        await writer.write(data)
        return (await writer.seal()).number

    async def exists(self, number: int) -> bool:
        try:
            async for _ in self.contents.read(ContentId(SPACE, number), 0, 1):
                return True
        except ContentMissingError:
            pass
        return False

    async def put(self, blob: Blob | None) -> None:
        def decide(transaction: Transaction) -> None:
            if blob is None:
                delete_current(transaction, Retention())
            else:
                replace_blob(transaction, blob, Retention())

        await self.partitions.commit(SPACE, NAME, decide)

    async def write(self, row: str, blocks: Sequence[Block]) -> None:
        def decide(transaction: Transaction) -> None:
            transaction.put(row, write_blocks(0, blocks))

        await self.partitions.commit(SPACE, NAME, decide, [row])

    async def referred(self) -> list[ContentId]:
        found: list[ContentId] = []
        async for part in self.engine.scan(SPACE, [KeyRange(("", ""), None)]):
            for index, value in enumerate(part.values):
                found += contents_of_row(SPACE, part.key(index)[1], value)
        return found

    async def rows(self) -> list[str]:
        found: list[str] = []
        async for part in self.engine.scan(SPACE, [KeyRange(("", ""), None)]):
            found += [part.key(index)[1] for index in range(len(part.values))]
        return found


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.garbage.wait_until_idle()
    await world.engine.close()


async def test_the_content_of_a_replaced_blob_is_deleted(world: World) -> None:
    old, new = await world.content(b"old"), await world.content(b"new")
    await world.put(BLOB._replace(content=old))
    await world.put(BLOB._replace(content=new))
    await world.garbage.delete((SPACE, NAME))
    assert not await world.exists(old)
    assert await world.exists(new)
    assert await world.rows() == ["b"], "the ledger says nothing any more"


async def test_a_deleted_list_takes_its_rows_and_the_contents_that_no_other_list_has(world: World) -> None:
    shared, alone = await world.content(b"1"), await world.content(b"2")
    await world.write(list_row(1, 2), [Block("a", 1, shared), Block("b", 1, alone)])
    await world.write(list_row(2, 1), [Block("a", 1, shared)])
    await world.put(BLOB._replace(list=1))
    await world.put(BLOB._replace(list=2))
    await world.garbage.delete((SPACE, NAME))
    assert await world.exists(shared)
    assert not await world.exists(alone)
    assert await world.rows() == ["b", list_row(2, 1)]


async def test_an_ended_upload_takes_its_blocks_but_not_those_of_the_list(world: World) -> None:
    taken, left = await world.content(b"1"), await world.content(b"2")
    row = upload_rows(5)
    await world.write(f"{row}a", [Block("a", 1, taken)])
    await world.write(f"{row}b", [Block("b", 1, left)])
    await world.write(list_row(1, 1), [Block("a", 1, taken)])

    def begin(transaction: Transaction) -> None:
        transaction.ledger = transaction.ledger._replace(upload=5)

    await world.partitions.commit(SPACE, NAME, begin)
    await world.put(BLOB._replace(list=1))
    await world.garbage.delete((SPACE, NAME))
    assert await world.exists(taken)
    assert not await world.exists(left)
    assert await world.rows() == ["b", list_row(1, 1)]


async def test_no_row_refers_to_a_content_that_was_deleted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may end between any two steps: `lazulite check` and a backup see what is left then."""
    monkeypatch.setattr(garbage, "_CONTENTS_OF_COMMIT", 2)
    contents = [await world.content(bytes([number])) for number in range(5)]
    await world.write(list_row(1, 2), [Block("a", 1, contents[0]), Block("b", 1, contents[1])])
    await world.write(list_row(1, 4), [Block("c", 1, contents[2]), Block("d", 1, contents[3])])
    await world.write(list_row(1, 5), [Block("e", 1, contents[4])])
    await world.put(BLOB._replace(list=1))
    await world.put(None)
    delete, lost = world.contents.delete, []

    async def observed(deleted: Collection[ContentId]) -> None:
        await delete(deleted)
        lost.extend([each for each in await world.referred() if not await world.exists(each.number)])

    monkeypatch.setattr(world.contents, "delete", observed)
    await world.garbage.delete((SPACE, NAME))
    assert lost == []
    assert await world.rows() == []
    assert not any([await world.exists(number) for number in contents])


async def test_a_process_deletes_the_contents_whose_rows_another_has_deleted(world: World) -> None:
    content = await world.content(b"1")
    await world.write(list_row(1, 1), [Block("a", 1, content)])
    await world.put(BLOB._replace(list=1))
    await world.put(None)
    with pytest.MonkeyPatch.context() as patch:

        async def fail(_: object) -> None:
            raise EngineUnavailableError("ended here")

        patch.setattr(world.contents, "delete", fail)
        with pytest.raises(EngineUnavailableError):
            await world.garbage.delete((SPACE, NAME))
    assert await world.rows() == ["a"]
    await world.process().delete((SPACE, NAME))
    assert not await world.exists(content)
    assert await world.rows() == []


async def test_garbage_waits_for_readers(world: World) -> None:
    old = await world.content(b"old")
    await world.put(BLOB._replace(content=old))
    world.garbage.readers.begin((SPACE, NAME))
    await world.put(None)
    world.garbage.begin((SPACE, NAME))
    await world.garbage.wait_until_idle()
    assert await world.exists(old)
    world.garbage.readers.end((SPACE, NAME))
    await world.garbage.wait_until_idle()
    assert not await world.exists(old)


async def test_the_next_process_finds_the_garbage_of_announced_containers(world: World) -> None:
    old = await world.content(b"old")
    await world.put(BLOB._replace(content=old))
    await world.garbage.announce(SPACE)
    await world.put(None)
    await world.process().search()
    assert not await world.exists(old)
    assert await world.rows() == []


async def test_a_process_announces_a_container_each_day(world: World) -> None:
    assert not world.garbage.is_announced(SPACE)
    await world.garbage.announce(SPACE)
    assert world.garbage.is_announced(SPACE)
    world.days += 1
    assert not world.garbage.is_announced(SPACE)


async def test_a_search_that_finds_nothing_forgets_an_old_announcement(world: World) -> None:
    old = await world.content(b"old")
    await world.put(BLOB._replace(content=old))
    await world.garbage.announce(SPACE)
    await world.put(None)
    world.days += 1
    await world.process().search()
    await world.process().search()
    assert await world.untidy() == [str(SPACE)], "a process may rely on it"
    world.days += 1
    await world.put(BLOB._replace(content=await world.content(b"new")))
    await world.put(None)
    await world.process().search()
    assert await world.untidy() == [str(SPACE)], "there was garbage"
    await world.process().search()
    assert await world.untidy() == []


async def test_a_search_keeps_an_announcement_that_was_renewed_meanwhile(world: World) -> None:
    await world.garbage.announce(SPACE)
    world.days += 2
    searching, scan = world.process(), world.engine.scan

    async def observed(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
        if arguments[0] == SPACE:
            await world.garbage.announce(SPACE)
        async for part in scan(*arguments, **named):
            yield part

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.engine, "scan", observed)
        await searching.search()
    assert await world.untidy() == [str(SPACE)]


async def test_one_search_runs_at_a_time_and_a_long_one_is_followed_by_a_longer_pause(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process of a database begins one every minute, however long it takes."""
    now_s, begun, over = 1000.0, 0, asyncio.Event()
    monkeypatch.setattr(garbage, "monotonic", lambda: now_s)

    async def search() -> None:
        nonlocal begun
        begun += 1
        await over.wait()

    monkeypatch.setattr(world.garbage, "search", search)
    for _ in range(3):
        world.garbage.begin_search()
        await asyncio.sleep(0)
    now_s += 100
    over.set()
    await world.garbage.wait_until_idle()
    assert begun == 1
    for moment_s, expected in ((now_s, 1), (now_s + 1900, 1), (now_s + 2100, 2)):
        now_s = moment_s
        world.garbage.begin_search()
        await world.garbage.wait_until_idle()
        assert begun == expected


async def test_a_search_reads_the_ledgers_only(world: World) -> None:
    """Rows between them are jumped over."""
    await world.write(list_row(1, 1), [Block("a", 1)])
    for index in range(3000):
        await world.write(list_row(1, 2 + index), [Block("a", 1)])
    await world.garbage.announce(SPACE)
    read = 0
    scan = world.engine.scan

    async def counted(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
        nonlocal read
        async for part in scan(*arguments, **named):
            read += len(part.values)
            yield part

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.engine, "scan", counted)
        await world.process().search()
    assert read < 300


async def test_a_list_that_becomes_garbage_meanwhile_keeps_its_contents_as_long_as_its_rows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pass reads the ledger, then what is in use; a commit may come in between."""
    shared = await world.content(b"1")
    await world.write(list_row(1, 1), [Block("a", 1, shared)])
    await world.write(list_row(2, 1), [Block("a", 1, shared)])
    await world.put(BLOB._replace(list=1))
    await world.put(BLOB._replace(list=2))
    live, delete = Garbage._live, world.contents.delete

    async def late(self: Garbage, *arguments: Any) -> Any:
        monkeypatch.setattr(Garbage, "_live", live)
        await world.put(BLOB)
        return await live(self, *arguments)

    async def checked(contents: Collection[ContentId]) -> None:
        assert not set(contents) & set(await world.referred())
        await delete(contents)

    monkeypatch.setattr(Garbage, "_live", late)
    monkeypatch.setattr(world.contents, "delete", checked)
    await world.garbage.delete((SPACE, NAME))
    assert await world.exists(shared)
    await world.garbage.delete((SPACE, NAME))
    assert not await world.exists(shared)
    assert await world.rows() == ["b"]
