"""The time limit, the shares and the silence of nodes, on a clock of the test."""

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.postgres.citus.nodes import ALL, RETRY_SECONDS, Nodes

SECONDS = 4.0


class Loop(asyncio.SelectorEventLoop):
    """A loop whose time passes at once when nothing else is to be done."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 100.0

    def time(self) -> float:
        return self._now_s

    def pass_time(self, seconds: float) -> None:
        self._now_s += seconds


@pytest.fixture(name="loop")
def _loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


async def soon() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def call(nodes: Nodes, node: int, answer: "asyncio.Future[None]") -> bool:
    async with nodes.turn(node) as is_new:
        await answer
        return is_new


async def unanswered(loop: Loop, nodes: Nodes, node: int) -> None:
    waiting = asyncio.ensure_future(call(nodes, node, loop.create_future()))
    await soon()
    loop.pass_time(SECONDS + 0.1)
    with pytest.raises(EngineUnavailableError, match="does not answer"):
        await waiting


def answered(loop: Loop) -> "asyncio.Future[None]":
    answer: asyncio.Future[None] = loop.create_future()
    answer.set_result(None)
    return answer


def test_a_node_that_answers_nothing_is_silent_and_tried_again_later(loop: Loop) -> None:
    async def run() -> None:
        nodes = Nodes(16, SECONDS)
        await unanswered(loop, nodes, 1)
        assert nodes.silent == {1}
        for node in (1, ALL):
            with pytest.raises(EngineUnavailableError):
                await call(nodes, node, answered(loop))
        assert not await call(nodes, 2, answered(loop)), "another node"
        loop.pass_time(RETRY_SECONDS)
        trial = asyncio.ensure_future(call(nodes, 1, answer := loop.create_future()))
        await soon()
        with pytest.raises(EngineUnavailableError):
            await call(nodes, 1, answered(loop))
        answer.set_result(None)
        assert await trial, "with a new session"
        assert not nodes.silent
        assert not await call(nodes, 1, answered(loop))

    loop.run_until_complete(run())


def test_a_statement_to_all_nodes_may_be_the_trial(loop: Loop) -> None:
    async def run() -> None:
        nodes = Nodes(16, SECONDS)
        await unanswered(loop, nodes, ALL)
        assert not nodes.silent, "it does not tell which one"
        await unanswered(loop, nodes, 1)
        loop.pass_time(RETRY_SECONDS)
        assert await call(nodes, ALL, answered(loop))
        assert not nodes.silent

    loop.run_until_complete(run())


def test_one_slow_statement_does_not_make_a_node_silent(loop: Loop) -> None:
    async def run() -> None:
        nodes = Nodes(16, SECONDS)
        slow = asyncio.ensure_future(call(nodes, 1, loop.create_future()))
        await soon()
        loop.pass_time(SECONDS / 2)
        await call(nodes, 1, answered(loop))
        loop.pass_time(SECONDS / 2 + 0.1)
        with pytest.raises(EngineUnavailableError):
            await slow
        assert not nodes.silent

    loop.run_until_complete(run())


def test_an_answer_as_old_as_a_statement_does_not_hide_that_a_node_is_silent(loop: Loop) -> None:
    """Or what waits for the statement would then wait as long again."""

    async def run() -> None:
        nodes = Nodes(16, SECONDS)
        last = asyncio.ensure_future(call(nodes, 1, loop.create_future()))
        await soon()
        await call(nodes, 1, answered(loop))
        loop.pass_time(SECONDS + 0.1)
        with pytest.raises(EngineUnavailableError):
            await last
        assert nodes.silent == {1}

    loop.run_until_complete(run())


@pytest.mark.parametrize(
    ("error", "answers"), [(asyncpg.DivisionByZeroError, True), (asyncpg.ConnectionFailureError, False)]
)
def test_an_error_of_a_node_is_an_answer_and_its_loss_is_none(
    loop: Loop, error: type[asyncpg.PostgresError], answers: bool
) -> None:
    async def run() -> None:
        nodes = Nodes(16, SECONDS)
        await unanswered(loop, nodes, 1)
        loop.pass_time(RETRY_SECONDS)
        with pytest.raises(error):
            async with nodes.turn(1):
                raise error("odd")
        assert (nodes.silent == frozenset()) == answers

    loop.run_until_complete(run())


@pytest.mark.parametrize(("node", "share"), [(1, 8), (ALL, 4)])
def test_a_node_has_a_share_and_its_callers_wait_no_longer_for_it_than_for_an_answer(
    loop: Loop, node: int, share: int
) -> None:
    async def run() -> None:
        nodes = Nodes(16, SECONDS)
        held = 0
        gate = loop.create_future()

        async def hold() -> None:
            nonlocal held
            async with nodes.turn(node):
                held += 1
                await gate

        calls = [asyncio.ensure_future(hold()) for _ in range(12)]
        await soon()
        assert held == share
        assert not await call(nodes, 2, answered(loop)), "another node is free"
        loop.pass_time(SECONDS + 0.1)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {EngineUnavailableError}
        assert held == share

    loop.run_until_complete(run())
