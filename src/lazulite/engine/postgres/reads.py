"""Reads of single rows, gathered: those that come while others are on their way go together, as one statement."""

import asyncio
from typing import NamedTuple

from lazulite.engine.postgres.failures import again
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.statements import GET, GET_ONE

_UNDER_WAY_MAX = 3
_GROUP_MAX = 32


class _Read(NamedTuple):
    space: int
    partition_key: bytes
    row_key: bytes
    answer: "asyncio.Future[bytes | None]"


class Reads:
    """See above.

    Args:
        pool: of connections.
        gather: whether rows of several partitions may be asked for at once.
    """

    def __init__(self, pool: Pool, *, gather: bool) -> None:
        self._pool = pool
        self._gather = gather
        self._waiting: list[_Read] = []
        self._under_way: set[asyncio.Task[None]] = set()

    async def get(self, space: int, partition_key: bytes, row_key: bytes) -> bytes | None:
        """Return a row's value by the forms of its key."""
        if not self._gather:
            found = await self._pool.fetch(GET_ONE, space, partition_key, row_key, reads=True)
            return found[0][0] if found else None
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes | None] = loop.create_future()
        self._waiting.append(_Read(space, partition_key, row_key, answer))
        if len(self._waiting) == 1 and len(self._under_way) < _UNDER_WAY_MAX:
            loop.call_soon(self._send)
        return await answer

    async def finished(self) -> None:
        """Return when nothing is on its way."""
        while self._under_way:
            await asyncio.wait(list(self._under_way))

    def _send(self) -> None:
        while self._waiting and len(self._under_way) < _UNDER_WAY_MAX:
            group, self._waiting = self._waiting[:_GROUP_MAX], self._waiting[_GROUP_MAX:]
            task = asyncio.create_task(self._read(group))
            self._under_way.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._send()

    async def _read(self, group: list[_Read]) -> None:
        spaces, partition_keys, row_keys, answers = zip(*group, strict=True)
        try:
            found = await self._pool.fetch(GET, spaces, partition_keys, row_keys, reads=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever.
            for answer in answers:
                if not answer.done():
                    answer.set_exception(again(error))
        else:
            for answer, record in zip(answers, found, strict=True):
                if not answer.done():  # A reader that does not wait any more.
                    answer.set_result(record[0])
