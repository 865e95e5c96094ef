"""The shared durable write; what health makes of it: server/middleware/test_health.py."""

import asyncio

import pytest

from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.write_check import WriteCheck


async def test_a_failure_is_raised_for_all_who_wait_and_for_those_who_come_while_it_stands() -> None:
    runs, now_s = 0, 0.0

    async def fail() -> None:
        nonlocal runs
        runs += 1
        raise EngineUnavailableError("full")

    check = WriteCheck(fail, 1, lambda: now_s)
    for _ in range(2):
        for waiter in [asyncio.ensure_future(check.passed()) for _ in range(3)]:
            with pytest.raises(EngineUnavailableError, match="full"):
                await waiter
        now_s += 0.5
    assert runs == 1
    with pytest.raises(EngineUnavailableError):
        await check.passed()
    assert runs == 2


async def test_nothing_is_kept_for_no_time() -> None:
    runs = 0

    async def write() -> None:
        nonlocal runs
        runs += 1

    check = WriteCheck(write, 0, lambda: 0.0)
    await check.passed()
    await check.passed()
    assert runs == 2


async def test_a_waiter_that_is_cancelled_leaves_the_write_to_the_others() -> None:
    gate = asyncio.Event()

    async def write() -> None:
        await gate.wait()

    check = WriteCheck(write)
    leaver, stayer = (asyncio.ensure_future(check.passed()) for _ in range(2))
    await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.wait([leaver])
    gate.set()
    await stayer
