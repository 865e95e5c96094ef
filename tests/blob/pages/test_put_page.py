"""Page blobs against a model: writes, clearing, resizing, snapshots, ranges and what changed since a snapshot."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import groupby
from random import Random
from typing import Any
from urllib.parse import quote

import pytest

from lazulite.blob.model.pages import SEGMENT_BYTES
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.pages import put_page
from lazulite.blob.storage.garbage import Changes
from tests.blob.world import VERSION, World, opened

PATH = "docs/blob"
PAGE = 512
PAGES = 3 * SEGMENT_BYTES // PAGE
UPDATE, CLEAR = {"x_ms_page_write": "update"}, {"x_ms_page_write": "clear"}
_RANGE = re.compile(rb"<(PageRange|ClearRange)><Start>(\d+)</Start><End>(\d+)</End>")
_MARKER = re.compile(rb"<NextMarker(?: /)?>(\d*)")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


async def create(world: World, pages: int = PAGES) -> None:
    length = str(pages * PAGE)
    answer = await world.ask("PUT", x_ms_blob_type="PageBlob", x_ms_blob_content_length=length)
    assert answer.status == 201, answer


async def ranges(world: World, query: str = "") -> list[tuple[str, int, int]]:
    answer = await world.ask("GET", query=f"comp=pagelist{query}")
    assert answer.status == 200, answer
    return [(kind.decode(), int(start), int(end)) for kind, start, end in _RANGE.findall(answer.body)]


def written(pages: dict[int, bytes]) -> list[tuple[str, int, int]]:
    runs = [[page for _, page in run] for _, run in groupby(enumerate(sorted(pages)), lambda each: each[1] - each[0])]
    return [("PageRange", run[0] * PAGE, run[-1] * PAGE + PAGE - 1) for run in runs]


def bytes_of(pages: dict[int, bytes], count: int = PAGES) -> bytes:
    zeros = bytes(PAGE)
    return b"".join(pages.get(page, zeros) for page in range(count))


@pytest.mark.parametrize("seed", range(4))
async def test_any_history_reads_as_its_model(world: World, seed: int) -> None:
    random = Random(seed)
    await create(world)
    pages: dict[int, bytes] = {}
    cleared: dict[int, int] = {}
    snapshots: list[tuple[str, dict[int, bytes]]] = []
    for step in range(60):
        count = random.choice([1, 2, 16, 128, 4096])
        first = random.randrange(PAGES - count)
        within = f"bytes={first * PAGE}-{(first + count) * PAGE - 1}"
        if random.random() < 0.3:
            answer = await world.ask("PUT", PATH, "comp=page", b"", VERSION, x_ms_range=within, **CLEAR)
            for page in range(first, first + count):
                if pages.pop(page, None) is not None:
                    cleared[page] = len(snapshots)
        else:
            data = random.randbytes(count * PAGE)
            answer = await world.ask("PUT", PATH, "comp=page", data, VERSION, x_ms_range=within, **UPDATE)
            pages |= {first + at: data[at * PAGE : (at + 1) * PAGE] for at in range(count)}
        assert answer.status == 201, answer
        if step % 20 == 19:
            taken = await world.ask("PUT", query="comp=snapshot")
            snapshots.append((quote(taken.headers["x-ms-snapshot"]), dict(pages)))
    assert (await world.ask("GET")).body == bytes_of(pages)
    assert await ranges(world) == written(pages)
    for epoch, (snapshot, model) in enumerate(snapshots, 1):
        assert (await world.ask("GET", query=f"snapshot={snapshot}")).body == bytes_of(model)
        assert await ranges(world, f"&snapshot={snapshot}") == written(model)
        found = {page: kind for kind, start, end in await ranges(world, f"&prevsnapshot={snapshot}")
                 for page in range(start // PAGE, (end + 1) // PAGE)}  # fmt: skip
        changed = {page for page in range(PAGES) if pages.get(page) != model.get(page)}
        assert changed <= found.keys(), "each page that differs is in a range"
        gone = {page for page, past in cleared.items() if past >= epoch and page not in pages}
        assert {page for page, kind in found.items() if kind == "ClearRange"} == gone
        paged, marker = [], ""
        while found:
            answer = await world.ask(
                "GET", query=f"comp=pagelist&prevsnapshot={snapshot}&maxresults=50&marker={marker}"
            )
            assert len(_RANGE.findall(answer.body)) <= 50
            paged += _RANGE.findall(answer.body)
            marker = _MARKER.findall(answer.body)[0].decode()
            if not marker:
                break
        assert {page: kind.decode() for kind, start, end in paged
                for page in range(int(start) // PAGE, (int(end) + 1) // PAGE)} == found  # fmt: skip
    await world.ask("DELETE", x_ms_delete_snapshots="include")
    assert await world.kept() == set()
    assert await world.rows() == []


async def test_many_small_writes_leave_few_contents(world: World) -> None:
    await create(world)
    for page in range(0, 2000, 2):
        within = f"bytes={page * PAGE}-{page * PAGE + PAGE - 1}"
        await world.ask(
            "PUT", "docs/blob", "comp=page", b"%03d." % (page % 1000) * 128, VERSION, x_ms_range=within, **UPDATE
        )
    assert len(await world.kept()) < 20


async def test_conditions_are_about_the_blob_before_the_first_commit_of_a_clearing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_page, "_SEGMENTS_OF_COMMIT", 1)
    await create(world, 3 * SEGMENT_BYTES // PAGE)
    for segment in range(3):
        within = f"bytes={segment * SEGMENT_BYTES}-{segment * SEGMENT_BYTES + PAGE - 1}"
        await world.ask("PUT", PATH, "comp=page", b"1" * PAGE, VERSION, **UPDATE, x_ms_range=within)
    whole = {"x_ms_range": f"bytes=0-{3 * SEGMENT_BYTES - 1}", **CLEAR}
    etag = (await world.ask("HEAD")).headers["etag"]
    assert (await world.ask("PUT", PATH, "comp=page", b"", VERSION, **whole, if_match='"0x1"')).status == 412
    assert len(await ranges(world)) == 3
    assert (await world.ask("PUT", PATH, "comp=page", b"", VERSION, **whole, if_match=etag)).status == 201
    assert await ranges(world) == []


def just_before_the_commit(monkeypatch: pytest.MonkeyPatch, write: Callable[[], Awaitable[object]]) -> None:
    """Have another request write before the next commit, after that looked at what is stored."""
    commit = Changes.commit

    async def late(self: Changes, *arguments: Any) -> Transaction:
        monkeypatch.setattr(Changes, "commit", commit)
        await write()
        return await commit(self, *arguments)

    monkeypatch.setattr(Changes, "commit", late)


@pytest.mark.parametrize("segments", [1, 3, 200])
async def test_a_page_that_is_written_right_before_a_clearing_commits_is_cleared(
    world: World, monkeypatch: pytest.MonkeyPatch, segments: int
) -> None:
    await create(world, segments * SEGMENT_BYTES // PAGE)
    just_before_the_commit(
        monkeypatch,
        lambda: world.ask("PUT", PATH, "comp=page", b"1" * PAGE, VERSION, **UPDATE, x_ms_range="bytes=0-511"),
    )
    answer = await world.ask(
        "PUT", PATH, "comp=page", b"", VERSION, **CLEAR, x_ms_range=f"bytes=0-{segments * SEGMENT_BYTES - 1}"
    )
    assert answer.status == 201
    assert (await world.ask("HEAD")).headers["etag"] == answer.headers["etag"], "the clearing came last"
    assert await ranges(world) == []


@pytest.mark.parametrize("segments", [1, 3, 200])
async def test_a_page_that_is_written_right_before_a_blob_shrinks_does_not_come_back(
    world: World, monkeypatch: pytest.MonkeyPatch, segments: int
) -> None:
    size = segments * SEGMENT_BYTES
    await create(world, size // PAGE)
    last = f"bytes={size - PAGE}-{size - 1}"
    just_before_the_commit(
        monkeypatch, lambda: world.ask("PUT", PATH, "comp=page", b"1" * PAGE, VERSION, **UPDATE, x_ms_range=last)
    )
    for length in (PAGE, size):
        answer = await world.ask("PUT", query="comp=properties", x_ms_blob_content_length=str(length))
        assert answer.status == 200
    assert await ranges(world) == []


async def test_a_blob_that_grows_right_before_it_shrinks_has_nothing_beyond_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(world, 2)

    async def grow_and_write() -> None:
        await world.ask("PUT", query="comp=properties", x_ms_blob_content_length=str(SEGMENT_BYTES * 2))
        last = f"bytes={SEGMENT_BYTES}-{SEGMENT_BYTES + PAGE - 1}"
        await world.ask("PUT", PATH, "comp=page", b"1" * PAGE, VERSION, **UPDATE, x_ms_range=last)

    just_before_the_commit(monkeypatch, grow_and_write)
    for length in (PAGE, SEGMENT_BYTES * 2):
        await world.ask("PUT", query="comp=properties", x_ms_blob_content_length=str(length))
    assert await ranges(world) == []
