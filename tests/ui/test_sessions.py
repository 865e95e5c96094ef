"""Tokens and sessions: once, in constant time, bounded, by a clock of the test."""

import asyncio
import itertools

import pytest

from lazulite.ui.sessions import (
    DELAY_SECONDS,
    IDLE_SECONDS,
    SESSIONS_MAX,
    TOKENS_MAX,
    WAITING_MAX,
    Sessions,
    TooManyAttemptsError,
)


class Setting:
    """Sessions with a clock, and sleeps that are counted."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        numbers = itertools.count(1)
        self.sessions = Sessions(lambda size: next(numbers).to_bytes(size, "big"), lambda: self.now, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def exchange(self, token: str) -> str | None:
        return await self.sessions.exchange(token, agent="a" * 500, client="127.0.0.1")

    async def signed_in(self) -> str:
        found = await self.exchange(self.sessions.new_token())
        assert found is not None
        return found


async def test_a_token_has_256_bits_and_is_exchanged_once() -> None:
    setting = Setting()
    token = setting.sessions.new_token()
    assert len(bytes.fromhex(token)) == 32
    first, second = await setting.exchange(token), await setting.exchange(token)
    assert first is not None
    assert second is None
    found = setting.sessions.find(first)
    assert found is not None
    assert len(found.agent) == 120
    assert token not in repr(vars(setting.sessions))
    assert first not in repr(vars(setting.sessions))


async def test_a_wrong_token_waits_and_is_counted() -> None:
    setting = Setting()
    for wrong in ("", "x", "\udcff", "0" * 64):
        assert await setting.exchange(wrong) is None
    assert setting.slept == [DELAY_SECONDS] * 4
    assert setting.sessions.wrong_tokens == 4


async def test_wrong_tokens_that_wait_are_bounded() -> None:
    setting = Setting()
    released = asyncio.Event()

    async def sleep(_: float) -> None:
        await released.wait()

    setting.sessions = Sessions(lambda size: b"\1" * size, lambda: 0.0, sleep)
    waiting = [asyncio.create_task(setting.exchange("wrong")) for _ in range(WAITING_MAX)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyAttemptsError):
        await setting.exchange("another wrong one")
    assert await setting.exchange(setting.sessions.new_token()) is not None, "wrong tokens lock nobody out"
    released.set()
    assert await asyncio.gather(*waiting) == [None] * WAITING_MAX


async def test_the_oldest_of_too_many_tokens_ends() -> None:
    setting = Setting()
    first, *_, last = [setting.sessions.new_token() for _ in range(TOKENS_MAX + 1)]
    assert await setting.exchange(first) is None
    assert await setting.exchange(last) is not None


async def test_a_session_ends_after_twelve_hours_without_a_request() -> None:
    setting = Setting()
    found = await setting.signed_in()
    for _ in range(3):
        setting.now += IDLE_SECONDS
        assert setting.sessions.find(found) is not None
    setting.now += IDLE_SECONDS + 1
    assert setting.sessions.find(found) is None
    assert setting.sessions.all() == ()


async def test_the_session_idle_for_the_longest_time_ends_when_there_are_too_many() -> None:
    setting = Setting()
    ids = []
    for _ in range(SESSIONS_MAX):
        setting.now += 1
        ids.append(await setting.signed_in())
    assert setting.sessions.find(ids[0]) is not None
    setting.now += 1
    await setting.signed_in()
    assert setting.sessions.find(ids[1]) is None
    assert setting.sessions.find(ids[0]) is not None
    assert len(setting.sessions.all()) == SESSIONS_MAX


async def test_an_ended_session_is_not_found() -> None:
    setting = Setting()
    found = await setting.signed_in()
    (session,) = setting.sessions.all()
    assert setting.sessions.end(session.number)
    assert not setting.sessions.end(session.number)
    assert setting.sessions.find(found) is None
