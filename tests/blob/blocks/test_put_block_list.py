"""Put Block List: long lists, what is left of old ones, and requests that change the blocks meanwhile."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from lazulite.blob.blocks import put_block_list
from lazulite.blob.blocks.block_list_xml import Entry
from lazulite.blob.blocks.put_block_list import NewList, list_row_values, make_list
from lazulite.blob.model.block import StoredBlock
from lazulite.blob.requests.call import Context
from lazulite.blob.storage.readers import Partition
from tests.blob.world import World, opened

LARGE = bytes(20_000)
_OPERATION = "lazulite.blob.blocks.put_block_list"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


@pytest.fixture
def short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a list have two blocks at most."""
    monkeypatch.setattr(put_block_list, "ROW_BLOCKS_MAX", 2)


async def put_blocks(world: World, names: str) -> None:
    for name in names:
        assert (await world.put_block(name, name.encode() * 3)).status == 201


def latest(names: str) -> list[tuple[str, str]]:
    return [("Latest", name) for name in names]


@pytest.mark.usefixtures("short_rows")
async def test_a_long_list_is_read_from_any_offset(world: World) -> None:
    await put_blocks(world, "abcdefg")
    await world.put_block("x", LARGE)
    assert (await world.put_list(*latest("gfxedcba"))).status == 201
    whole = b"gggfff" + LARGE + b"eeedddcccbbbaaa"
    assert (await world.ask("GET")).body == whole
    for start in (0, 1, 5, 6, 20_005, 20_006, 20_008, 20_020):
        assert (await world.ask("GET", range=f"bytes={start}-")).body == whole[start:]
    assert len([row for row in await world.rows() if row.startswith("x")]) == 4


@pytest.mark.usefixtures("short_rows")
async def test_a_new_list_takes_blocks_of_the_old_one(world: World) -> None:
    await put_blocks(world, "abcde")
    await world.put_block("x", LARGE)
    await world.put_list(*latest("abcdex"))
    await put_blocks(world, "ef")
    await world.put_list(("Committed", "x"), ("Latest", "e"), ("Uncommitted", "f"), *latest("aa"))
    assert (await world.ask("GET")).body == LARGE + b"eeefffaaaaaa"
    assert len(await world.kept()) == 1
    assert len(await world.rows()) == 4, "the blob and three rows"
    await world.put_list(*latest("a"))
    assert not await world.kept()
    assert len(await world.rows()) == 2


async def test_a_list_without_blocks_makes_an_empty_blob(world: World) -> None:
    await put_blocks(world, "a")
    assert (await world.put_list()).status == 201
    assert (await world.ask("GET")).body == b""
    assert await world.rows() == ["b"]


class Meddling:
    """Lets another request run after a list was made, and before it is committed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *requests: Callable[[], Awaitable[object]]) -> None:
        self.made = 0
        self._requests = list(requests)
        monkeypatch.setattr(f"{_OPERATION}.make_list", self._run)

    async def _run(self, context: Context, partition: Partition, entries: Sequence[Entry]) -> NewList:
        made = await make_list(context, partition, entries)
        self.made += 1
        if self._requests:
            await self._requests.pop(0)()
        return made


@pytest.mark.usefixtures("short_rows")
@pytest.mark.parametrize("names", ["ab", "abcde"], ids=["a short list", "a long list"])
async def test_a_replaced_block_is_taken_in_its_new_form(
    world: World, monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    await put_blocks(world, names)
    await world.put_block("b", LARGE)
    meddling = Meddling(monkeypatch, lambda: world.put_block("b", b"new"))
    assert (await world.put_list(*latest(names))).status == 201
    assert meddling.made == 2
    assert b"new" in (await world.ask("GET")).body
    assert not await world.kept()
    assert len([row for row in await world.rows() if row.startswith("x")]) == (len(names) + 1) // 2


async def test_a_new_block_is_taken_in_place_of_a_committed_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await put_blocks(world, "ab")
    await world.put_list(*latest("ab"))
    await put_blocks(world, "z")
    meddling = Meddling(monkeypatch, lambda: world.put_block("b", b"new"))
    await world.put_list(*latest("ab"))
    assert (await world.ask("GET")).body == b"aaanew"
    assert meddling.made == 2


async def test_a_committed_block_was_dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await put_blocks(world, "a")
    await world.put_block("b", LARGE)
    await world.put_list(*latest("ab"))
    Meddling(monkeypatch, lambda: world.put_list(*latest("a")))
    assert (await world.put_list(*latest("ab"))).code == "InvalidBlockList"
    assert (await world.ask("GET")).body == b"aaa"


async def test_a_block_that_no_list_names_changes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await put_blocks(world, "ab")
    meddling = Meddling(monkeypatch, lambda: world.put_block("c", b"new"))
    assert (await world.put_list(*latest("ab"))).status == 201
    assert meddling.made == 1
    assert len(await world.rows()) == 2, "it was discarded"


@pytest.mark.usefixtures("short_rows")
@pytest.mark.parametrize("source", ["Latest", "Uncommitted", "Committed"])
async def test_another_list_comes_first(world: World, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    await put_blocks(world, "abcdef")
    if source == "Committed":
        await world.put_list(*latest("abcdef"))
    Meddling(monkeypatch, lambda: world.put_list(*latest("ab")))
    answer = await world.put_list(*((source, name) for name in "abcdef"))
    assert answer.code == "InvalidBlockList"
    assert (await world.ask("GET")).body == b"aaabbb"
    assert len(await world.rows()) == 2


@pytest.mark.usefixtures("short_rows")
async def test_a_list_whose_commit_is_rejected_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await put_blocks(world, "abcde")
    Meddling(monkeypatch, lambda: world.ask("PUT", body=b"x", x_ms_blob_type="BlockBlob"))
    assert (await world.put_list(*latest("abcde"), if_none_match="*")).code == "BlobAlreadyExists"
    assert await world.rows() == ["b"]


@pytest.mark.usefixtures("short_rows")
async def test_a_list_that_was_given_up_meanwhile_is_written_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_blocks(world, "abcde")
    given_up = list[str]()

    async def slowly(context: Context, partition: Partition, new: NewList) -> AsyncIterator[tuple[str, bytes]]:
        async for row, value in list_row_values(context, partition, new):
            yield row, value
            if not given_up:
                given_up.append(row)
                world.days += 3
                await context.uploads.schedule(0, partition)
                await context.maintain()
                assert row not in await world.rows()

    monkeypatch.setattr(f"{_OPERATION}.list_row_values", slowly)
    assert (await world.put_list(*latest("abcde"))).status == 201
    assert (await world.ask("GET")).body == b"aaabbbcccdddeee"
    assert len(await world.rows()) == 4


async def test_a_list_gives_way_after_some_tries(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await put_blocks(world, "a")
    Meddling(monkeypatch, *[lambda: world.put_block("a", b"new")] * 10)
    assert (await world.put_list(*latest("a"))).code == "ServerBusy"
    assert (await world.put_list(*latest("a"))).status == 201


def test_rows_hold_bounded_bytes() -> None:
    blocks = [put_block_list.SelectedBlock(StoredBlock("a", 100_000, None, 0), "w")] * 7
    assert [len(each) for each in put_block_list.block_ranges(blocks)] == [3, 3, 1]
    contents = [put_block_list.SelectedBlock(StoredBlock("a", 10**9, 7, 0), "w")] * 2500
    assert [len(each) for each in put_block_list.block_ranges(contents)] == [1000, 1000, 500]
    assert list(put_block_list.block_ranges([])) == []
