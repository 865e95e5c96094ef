"""Which groups may leave."""

import asyncio
from collections.abc import Callable

from lazulite.engine.postgres.batch_window import Traffic

FULL = 8


def _traffic(patience_seconds: float = 3600, look: Callable[[], None] = lambda: None) -> Traffic:
    return Traffic(FULL, patience_seconds, look)


async def test_nobody_waits_while_few_are_on_their_way() -> None:
    traffic = _traffic()
    assert traffic.allows(1)
    traffic.leave("one", 1)
    assert traffic.allows(1)
    traffic.leave("two", 2)
    assert traffic.allows(1)
    traffic.leave("one more", 1)
    traffic.arrive("one")
    assert traffic.allows(1)


async def test_others_wait_for_many_unless_they_are_enough_themselves() -> None:
    traffic = _traffic()
    traffic.leave("many", 4)
    assert not traffic.allows(1)
    assert not traffic.allows(FULL - 1)
    assert traffic.allows(FULL)
    traffic.arrive("many")
    assert traffic.allows(1)


async def test_there_are_never_more_than_three_however_many_wait() -> None:
    traffic = _traffic()
    for group in range(3):
        traffic.leave(group, FULL)
    assert not traffic.allows(10 * FULL)
    traffic.arrive(1)
    assert traffic.allows(FULL)


async def test_patience_ends_and_is_told() -> None:
    ended = asyncio.Event()
    traffic = _traffic(1e-9, ended.set)
    traffic.leave("many", 4)
    assert not traffic.allows(1)
    await ended.wait()
    assert traffic.allows(1)
    traffic.arrive("many")
    assert traffic.allows(1)


async def test_who_has_none_waits_for_nobody() -> None:
    traffic = _traffic(0)
    traffic.leave("many", 4)
    assert traffic.allows(1)


async def test_nothing_is_left_of_who_has_arrived() -> None:
    traffic = _traffic()
    traffic.leave("many", 4)
    [(_, timer)] = traffic._waited_for.values()
    traffic.arrive("many")
    assert timer.cancelled()
    assert not traffic._waited_for
