import asyncio
from collections.abc import AsyncGenerator, Sequence
from itertools import count, cycle
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.commit import changing
from lazulite.engine.contract import Engine, JoinedKeys, Key, KeyRange, Slice
from lazulite.protocol.steps import Steps
from lazulite.service.routing import QueryLimits
from lazulite.table.model.row import LARGE_BYTES
from lazulite.table.query.page import Page, PageReader, PageRequest, read_page

SPACE = 5000
ALL = [KeyRange(("", ""), None)]


@pytest.fixture(name="rows", autouse=True)
async def _rows(engine: Engine) -> list[bytes]:
    names = [f"r{index:04}" for index in range(1200)]
    await engine.commit(SPACE, "p", changing(names, lambda _, __: {name: name.encode() for name in names}))
    return [name.encode() for name in names]


def serialize_steps(value: bytes) -> Steps[bytes]:
    yield from ()
    return value


async def _read(
    engine: Engine,
    top: int,
    matching: str | None = None,
    limits: QueryLimits | None = None,
    deadline: float = float("inf"),
) -> Page:
    def predicate(value: bytes) -> bool:
        return matching is None or value.endswith(matching.encode())

    request = PageRequest(SPACE, ALL, None if matching is None else predicate, bytes, serialize_steps, top, deadline)
    ticks = count()
    return await read_page(engine, request, limits or QueryLimits(), lambda: next(ticks))


async def test_a_full_page_names_the_next_row(engine: Engine, rows: list[bytes]) -> None:
    page = await _read(engine, 1000)
    assert page.items == rows[:1000]
    assert page.next == ("p", "r1000")
    assert page.scanned == 1000


async def test_the_last_page_names_none(engine: Engine, rows: list[bytes]) -> None:
    page = await _read(engine, 1200)
    assert (len(page.items), page.next, page.scanned) == (1200, None, 1200)
    assert (await _read(engine, 1199)).next == ("p", "r1199")
    assert rows


async def test_a_filtered_page_looks_ahead_for_one_more_match(engine: Engine) -> None:
    page = await _read(engine, 3, "00")
    assert page.items == [b"r0000", b"r0100", b"r0200"]
    assert page.next == ("p", "r0300")
    page = await _read(engine, 12, "00")
    assert (len(page.items), page.next, page.scanned) == (12, None, 1200)


async def test_looking_ahead_is_bounded(engine: Engine) -> None:
    page = await _read(engine, 1, "0000", QueryLimits(lookahead_rows=10))
    assert (page.items, page.next, page.scanned) == ([b"r0000"], ("p", "r0001"), 11)


async def test_time_ends_a_page_without_losing_a_row(engine: Engine, rows: list[bytes]) -> None:
    for matching in (None, "0"):
        page = await _read(engine, 1000, matching, deadline=1.5)
        assert page.next is not None
        seen = page.scanned
        assert 0 < seen < 1000
        assert page.next == ("p", rows[seen].decode())


async def test_size_ends_a_page(engine: Engine) -> None:
    page = await _read(engine, 1000, limits=QueryLimits(page_bytes=100))
    assert 0 < len(page.items) < 1000
    assert page.next == ("p", f"r{len(page.items):04}")
    page = await _read(engine, 1000, "0", limits=QueryLimits(page_bytes=100))
    assert 20 <= len(page.items) < 120
    assert page.next is not None


@pytest.mark.parametrize(("page_bytes", "deadline", "whole"), [(2, 7, True), (1, 7, False), (2, 6, False)])
async def test_a_page_ends_beyond_its_size_and_its_time(page_bytes: int, deadline: float, whole: bool) -> None:
    request = PageRequest(SPACE, ALL, None, bytes, serialize_steps, 1000, deadline)
    reader = PageReader(request, QueryLimits(page_bytes=page_bytes), lambda: 7)
    await reader.read(_sliced([b"r"] * 3, 0, [1]))
    assert (reader.page.next is None) == whole


@pytest.mark.parametrize(
    ("row_seconds", "runs"),
    [(0, [2, 4, 8, 16, 32, 64, 64]), (1 / 64, [2, 4, 8, 16, 8, 16, 8]), (1, [2, 1, 1, 1, 1, 1, 1])],
)
async def test_runs_take_about_an_eighth_of_a_slice(row_seconds: float, runs: list[int]) -> None:
    now, found = 0.0, [0]

    def predicate(_: bytes) -> bool:
        nonlocal now
        now += row_seconds
        found[-1] += 1
        return True

    def monotonic() -> float:
        if found[-1]:  # The first look of a checkpoint.
            found.append(0)
        return now

    request = PageRequest(SPACE, ALL, predicate, bytes, serialize_steps, 1000, float("inf"))
    await PageReader(request, QueryLimits(slice_seconds=1), monotonic).read(_sliced([b"r"] * 500, 0, [500]))
    assert found[:7] == runs


async def test_nothing_asked_nothing_read(engine: Engine) -> None:
    assert await _read(engine, 0) == Page()
    request = PageRequest(SPACE, [], None, bytes, serialize_steps, 10, 0)
    assert await read_page(engine, request, QueryLimits(), lambda: 0) == Page()


@pytest.mark.parametrize("matching", [None, "x"])
async def test_others_get_a_iteration_inside_a_slice(engine: Engine, matching: str | None) -> None:
    """Each reading of this clock is a second later, so every checkpoint yields."""
    iterations = 0

    async def count_iterations() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count_iterations())
    page = await _read(engine, 1200, matching)
    other.cancel()
    assert page.scanned == 1200
    assert iterations >= 1200


async def test_a_large_row_is_a_run_of_its_own() -> None:
    """The clock stands still, so runs of small rows grow."""
    rows = [b"s" * 9] * 200 + [b"l" * (LARGE_BYTES + 1)] * 3
    runs: list[int] = []

    def predicate(value: bytes) -> bool:
        runs.append(len(value))
        return True

    def steps(value: bytes) -> Steps[bytes]:
        runs.append(-len(value))
        yield
        return value

    for chosen in (None, predicate):
        runs.clear()
        reader = PageReader(PageRequest(SPACE, ALL, chosen, bytes, steps, 1000, 1), QueryLimits(), lambda: 0)
        await reader.read(_sliced(rows, 0, [len(rows)]))
        assert reader.page.items == rows
        size = LARGE_BYTES + 1
        assert runs[-3 * (1 + (chosen is not None)) :] == 3 * ([-size] if chosen is None else [size, -size])


async def test_a_run_holds_as_many_rows_as_the_bytes_of_a_large_one() -> None:
    """The clock stands still, so runs grow up to their bytes; each begins with a checkpoint."""
    looks = count()
    request = PageRequest(SPACE, ALL, None, bytes, serialize_steps, 1000, 1)
    rows = [b"r" * (LARGE_BYTES // 60)] * 600
    reader = PageReader(request, QueryLimits(), lambda: next(looks) * 0)
    await reader.read(_sliced(rows, 0, [len(rows)]))
    assert reader.page.items == rows
    assert next(looks) < 20


async def test_a_page_makes_progress_though_its_time_is_up(engine: Engine) -> None:
    for matching in (None, "none"):
        page = await _read(engine, 1000, matching, deadline=-1)
        assert page.scanned > 0
        assert page.next is not None


class _Slice(NamedTuple):
    values: Sequence[bytes]
    first: int

    def key(self, index: int) -> Key:
        return "p", f"{self.first + index:04}"

    def columns(self) -> tuple[Sequence[str], Sequence[str]]:
        raise NotImplementedError  # Nor their keys together.

    def joined(self, start: int) -> JoinedKeys:
        raise NotImplementedError

    def find(self, key: Key, start: int) -> int:
        raise NotImplementedError  # Pages of tables read all rows of a slice.


async def _sliced(rows: Sequence[bytes], first: int, sizes: Sequence[int]) -> AsyncGenerator[Slice, None]:
    for size in cycle(sizes):
        if first >= len(rows):
            return
        yield _Slice(rows[first : first + size], first)
        first += size


@given(
    st.lists(st.booleans(), min_size=1, max_size=300),
    st.booleans(),
    st.integers(1, 40),
    st.integers(1, 60),
    st.lists(st.integers(1, 100), min_size=1, max_size=3),
    st.sampled_from([1, 30, 10_000]),
    st.sampled_from([0.0, 0.0004, 1.0]),
)
async def test_pages_together_hold_each_row_once(
    belonging: list[bool],
    filtered: bool,
    top: int,
    lookahead: int,
    sizes: list[int],
    page_bytes: int,
    seconds_a_look: float,
) -> None:
    """Whatever the runs, the slices and the limits are."""
    rows = [b"%04d%c" % (index, b"ny"[belongs]) for index, belongs in enumerate(belonging)]
    limits = QueryLimits(lookahead_rows=lookahead, page_bytes=page_bytes)
    predicate = (lambda value: value.endswith(b"y")) if filtered else None
    request = PageRequest(SPACE, ALL, predicate, bytes, serialize_steps, top, float("inf"))
    looks = count()
    found: list[bytes] = []
    next_row: Key | None = ("p", "0000")
    while next_row is not None:
        reader = PageReader(request, limits, lambda: next(looks) * seconds_a_look)
        before = next_row
        await reader.read(_sliced(rows, int(before[1]), sizes))
        page, next_row = reader.page, reader.page.next
        assert len(page.items) <= top
        assert page.scanned >= len(page.items)
        assert next_row is None or next_row > before
        found += page.items
    assert found == [row for row in rows if not filtered or row.endswith(b"y")]
