"""The processes that serve the queues of one database, and which shards are home to each.

    partition ""    {a random number of the process}    the time of its last announcement

Each process announces itself now and then, and reads which others do. The shards of every queue are dealt out among the
processes in the order of their numbers. That is a hint, which keeps them from competing for rows: for a while after a
process comes or goes, two of them may have one home.
"""

from collections.abc import Sequence
from contextlib import aclosing
from random import Random

from lazulite.engine.commit import put_rows
from lazulite.engine.contract import Clock, Engine, Key, KeyRange
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.records.spaces import PROCESSES, Space

ALIVE_TICKS = 20 * TICKS_PER_SECOND
"""A process that has not announced itself for so long is taken for gone."""
FORGET_TICKS = 3600 * TICKS_PER_SECOND
_PARTITION = ""


class Processes:
    """The processes of a database, as one of them knows them.

    Args:
        engine: the database.
        present: the time now.
        random: the source of its number.
    """

    def __init__(self, engine: Engine, present: Clock, random: Random) -> None:
        self._engine = engine
        self._present = present
        self._name = f"{random.getrandbits(64):016x}"
        self._place, self._count = 0, 1

    async def announce(self) -> None:
        """Announce this process, and deal out the shards again."""
        now = self._present()
        value = now.to_bytes(8, "big")
        await self._engine.commit(PROCESSES, _PARTITION, put_rows({self._name: value}))
        alive, gone = [], []
        async with aclosing(self._engine.scan(PROCESSES, [KeyRange((_PARTITION, ""), None)])) as slices:
            async for part in slices:
                for index, seen in enumerate(part.values):
                    silent = now - int.from_bytes(seen, "big")
                    if silent < ALIVE_TICKS:
                        alive.append(part.key(index)[1])
                    elif silent > FORGET_TICKS:
                        gone.append(part.key(index)[1])
        if gone:
            await self._engine.commit(PROCESSES, _PARTITION, put_rows(dict.fromkeys(gone)))
        self._place, self._count = alive.index(self._name), len(alive)

    def homes(self, shards: int) -> Sequence[int]:
        """Return the home shards of this process, of a queue with so many."""
        count = min(self._count, shards)
        return range(self._place % count, shards, count)


def _verify(key: Key, value: bytes) -> None:
    if len(key[1]) != 16 or len(value) != 8:
        raise ValueError("the row is not a process")


PROCESSES_SPACE = Space(number=PROCESSES, owner="queue", title="the processes that serve queues", verify=_verify)
