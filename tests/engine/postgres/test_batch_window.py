"""Which batches the in-flight window allows."""

import asyncio
from collections.abc import Callable

from lazulite.engine.postgres.batch_window import BatchWindow

FULL = 8


def _window(linger_seconds: float = 3600, on_linger_end: Callable[[], None] = lambda: None) -> BatchWindow:
    return BatchWindow(FULL, linger_seconds, on_linger_end)


async def test_requests_do_not_linger_while_few_are_in_flight() -> None:
    window = _window()
    assert window.allows(1)
    window.sent("one", 1)
    assert window.allows(1)
    window.sent("two", 2)
    assert window.allows(1)
    window.sent("one more", 1)
    window.answered("one")
    assert window.allows(1)


async def test_requests_linger_for_many_unless_they_fill_a_batch() -> None:
    window = _window()
    window.sent("many", 4)
    assert not window.allows(1)
    assert not window.allows(FULL - 1)
    assert window.allows(FULL)
    window.answered("many")
    assert window.allows(1)


async def test_never_more_than_three_batches_are_in_flight() -> None:
    window = _window()
    for batch in range(3):
        window.sent(batch, FULL)
    assert not window.allows(10 * FULL)
    window.answered(1)
    assert window.allows(FULL)


async def test_linger_time_ends_with_a_call() -> None:
    ended = asyncio.Event()
    window = _window(1e-9, ended.set)
    window.sent("many", 4)
    assert not window.allows(1)
    await ended.wait()
    assert window.allows(1)
    window.answered("many")
    assert window.allows(1)


async def test_requests_without_linger_time_are_sent_at_once() -> None:
    window = _window(0)
    window.sent("many", 4)
    assert window.allows(1)


async def test_answered_batch_leaves_no_timer() -> None:
    window = _window()
    window.sent("many", 4)
    [(_, timer)] = window._lingering.values()
    window.answered("many")
    assert timer.cancelled()
    assert not window._lingering
