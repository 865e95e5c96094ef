"""The nodes of a Citus cluster: how much of the pool each may hold, and whether it answers.

A coordinator waits for a silent node as long as its TCP connection lives, and cannot cancel a statement that has
reached it. So each statement on a node has a time limit, and a node has a share of the connections.

Invariants: a call ends within `seconds`. A node is *silent* from the time at which a statement ended without an answer,
and no other one was answered in the last three quarters of `seconds`. Calls on a silent node fail at once, but for one
in `RETRY_SECONDS` that tries a new session: such a session can be ended, as it does not reach the node.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from lazulite.engine.contract import EngineUnavailableError

RETRY_SECONDS = 1.0
_QUIET = 0.75
"""A node without an answer for this share of a call's time is silent. Below 1, as its last answer may have come
together with the statement that waits."""
_UNANSWERED = "a node of the database does not answer"
ALL = -1
"""Stands for all nodes together, in a statement that goes to each of them."""


class _Node:
    def __init__(self, share: int) -> None:
        self.slots = asyncio.Semaphore(share)
        self.answered_s = 0.0
        """When a statement on it was answered last, on the loop's clock."""
        self.silent = False
        self.retry_s = 0.0
        """When the next call may try a silent node."""


class Nodes:
    """The nodes of one engine.

    Args:
        connections_max: of the pool. A node may hold half of it, and statements that go to all nodes a quarter.
        seconds: time limit of a call.
    """

    def __init__(self, connections_max: int, seconds: float) -> None:
        self._connections_max = connections_max
        self._seconds = seconds
        self._nodes: dict[int, _Node] = {}

    @property
    def silent(self) -> frozenset[int]:
        """The silent nodes."""
        return frozenset(node for node, state in self._nodes.items() if state.silent)

    @asynccontextmanager
    async def turn(self, node: int) -> AsyncIterator[bool]:
        """Wait for a node's turn; yield whether its statement needs a new session.

        Raises:
            EngineUnavailableError: the node is silent, or did not answer in time. The outcome of a write is unknown.
        """
        loop = asyncio.get_running_loop()
        state = self._state(node)
        asked = list(self._nodes.values()) if node == ALL else [state]
        is_retry = self._admit(asked, loop.time())
        is_sent = False
        try:
            async with asyncio.timeout(self._seconds), state.slots:
                if state.silent and not is_retry:
                    raise EngineUnavailableError(_UNANSWERED)
                is_sent = True
                yield is_retry
        except TimeoutError:
            now_s = loop.time()
            if node != ALL and is_sent and now_s - state.answered_s > self._seconds * _QUIET:
                state.silent, state.retry_s = True, now_s + RETRY_SECONDS
            raise EngineUnavailableError(_UNANSWERED) from None
        except asyncpg.PostgresConnectionError:
            raise
        except asyncpg.PostgresError:
            _answered(asked, loop.time())
            raise
        else:
            _answered(asked, loop.time())

    def _admit(self, asked: Sequence[_Node], now_s: float) -> bool:
        """Return whether this call tries silent nodes; raise if one is silent and it does not."""
        silent = [node for node in asked if node.silent]
        if any(now_s < node.retry_s for node in silent):
            raise EngineUnavailableError(_UNANSWERED)
        for node in silent:
            node.retry_s = now_s + RETRY_SECONDS
        return bool(silent)

    def _state(self, node: int) -> _Node:
        state = self._nodes.get(node)
        if state is None:
            share = self._connections_max // (4 if node == ALL else 2)
            state = self._nodes[node] = _Node(max(1, share))
        return state


def _answered(asked: Sequence[_Node], now_s: float) -> None:
    for node in asked:
        node.answered_s, node.silent = now_s, False
