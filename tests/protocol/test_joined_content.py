import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.joined_content import EnclosedContent, JoinedContent
from lazulite.protocol.message import WINDOW_BYTES, ResponseContent, Window

PART_BYTES = (0, 1, 3, WINDOW_BYTES - 1, WINDOW_BYTES, WINDOW_BYTES + 1, 2 * WINDOW_BYTES, 3 * WINDOW_BYTES + 5)


async def windows_of(content: ResponseContent) -> list[Window]:
    return [window async for window in content.chunks()]


def _parts(sizes: Sequence[int]) -> list[bytes]:
    return [bytes([65 + number % 26]) * size for number, size in enumerate(sizes)]


@given(st.lists(st.sampled_from(PART_BYTES), max_size=12))
async def test_windows_are_full_but_the_last_and_together_the_parts(sizes: list[int]) -> None:
    parts = _parts(sizes)
    content = JoinedContent(parts)
    assert content.length == sum(sizes)
    windows = await windows_of(content)
    assert b"".join(windows) == b"".join(parts)
    assert all(len(window) == WINDOW_BYTES for window in windows[:-1])
    assert all(0 < len(window) <= WINDOW_BYTES for window in windows)


@pytest.mark.parametrize("size", [1000, 1 << 20])
async def test_no_more_than_a_window_is_joined_at_a_time(size: int) -> None:
    """Joining all of it would take as much memory as all of it."""
    content = JoinedContent([bytes(size)] * ((16 << 20) // size))
    tracemalloc.start()
    try:
        async for _ in content.chunks():
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * WINDOW_BYTES


async def test_a_part_is_released_once_it_is_sent() -> None:
    tracemalloc.start()
    try:
        content = JoinedContent(bytes(WINDOW_BYTES) for _ in range(16))
        held = []
        async for _ in content.chunks():
            held.append(tracemalloc.get_traced_memory()[0])
        assert held[8] < 10 * WINDOW_BYTES
        rest = JoinedContent(bytes(WINDOW_BYTES) for _ in range(16))
        await rest.aclose()
        assert tracemalloc.get_traced_memory()[0] < 4 * WINDOW_BYTES
    finally:
        tracemalloc.stop()


async def test_enclosed_content_has_its_own_length_and_closes_what_it_encloses() -> None:
    inner = JoinedContent(_parts([5, WINDOW_BYTES]))
    content = EnclosedContent(b"<", inner, b">>")
    assert content.length == WINDOW_BYTES + 8
    assert b"".join(await windows_of(content)) == b"<" + b"A" * 5 + b"B" * WINDOW_BYTES + b">>"
    unsent = JoinedContent(_parts([5]))
    await EnclosedContent(b"<", unsent, b">").aclose()
    assert await windows_of(unsent) == []
