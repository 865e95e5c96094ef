"""The expirations that are due next: what says, for all queues at once, in which shards messages have to be removed.

    partition ""    {time}{space}{shard}    a random number, and the end of a lease

Times are in ticks, rounded up to `SLOT_TICKS`. Invariants: for each message that expires there is a row of its shard,
at its time or before. A row is removed only after a sweep: after the shard's `sweeps` was raised, its expired messages
were removed, and there was a row for the next one. A commit that relies on a row names the number of sweeps that was
stored before it wrote the row, so that it is rejected if a sweep may have removed the row meanwhile.
"""

import struct
from collections.abc import AsyncGenerator
from contextlib import aclosing
from random import Random
from typing import NamedTuple

from lazulite.engine.commit import compare_and_swap, put_rows
from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.records.spaces import EXPIRATIONS, Space

SLOT_TICKS = 15 * TICKS_PER_SECOND
LEASE_TICKS = 30 * TICKS_PER_SECOND
"""So long other processes leave a shard to the one that sweeps it."""
DUE_MAX = 1024
"""Shards of one round of sweeps."""
_PARTITION = ""
_VALUE = struct.Struct(">QQ")
_CHARACTERS = 34


class DueShard(NamedTuple):
    """A shard in which messages may have expired."""

    time: int
    """When they are due, in ticks."""
    space: int
    shard: int
    row: str
    value: bytes


def slot_of(expires: int) -> int:
    """Return the time at which the expiration of a message is due."""
    return -(-expires // SLOT_TICKS) * SLOT_TICKS


class Expirations:
    """The expirations that are due next.

    Args:
        engine: holds the rows.
        random: the source of numbers that tell two values of a row apart.
    """

    def __init__(self, engine: Engine, random: Random) -> None:
        self._engine = engine
        self._random = random

    async def schedule(self, space: int, shard: int, slot: int) -> None:
        """Have a shard swept at a time."""
        row = f"{slot:016x}{space:016x}{shard:02x}"
        await self._engine.commit(EXPIRATIONS, _PARTITION, put_rows({row: self._value(0)}))

    async def due(self, now: int) -> AsyncGenerator[DueShard, None]:
        """Yield shards that are to be swept by this process now, in the order of time."""
        key_range = KeyRange((_PARTITION, ""), (_PARTITION, f"{now + 1:016x}"))
        found: list[DueShard] = []
        async with aclosing(self._engine.scan(EXPIRATIONS, [key_range], DUE_MAX)) as slices:
            async for part in slices:
                found += [_read(part.key(index)[1], value) for index, value in enumerate(part.values)]
        for due in found:
            if _VALUE.unpack(due.value)[1] > now:
                continue
            leased = due._replace(value=self._value(now + LEASE_TICKS))
            if await self._swap(due, leased.value):
                yield leased

    async def finish(self, due: DueShard) -> None:
        """Forget a shard that was swept, unless it was scheduled again."""
        await self._swap(due, None)

    async def postpone(self, due: DueShard) -> None:
        """End the lease of a shard that has more to remove."""
        await self._swap(due, self._value(0))

    async def _swap(self, due: DueShard, value: bytes | None) -> bool:
        swap = compare_and_swap({due.row: due.value}, {due.row: value})
        return await self._engine.commit(EXPIRATIONS, _PARTITION, swap)

    def _value(self, leased_until: int) -> bytes:
        return _VALUE.pack(self._random.getrandbits(64), leased_until)


def _read(row: str, value: bytes) -> DueShard:
    if len(row) != _CHARACTERS or len(value) != _VALUE.size or row != row.lower():
        raise ValueError("the row is not an expiration")
    return DueShard(int(row[:16], 16), int(row[16:32], 16), int(row[32:], 16), row, value)


def _verify(key: Key, value: bytes) -> None:
    _read(key[1], value)


EXPIRATIONS_SPACE = Space(
    number=EXPIRATIONS,
    owner="queue",
    title="the expirations of messages",
    copied=True,
    in_checksum=False,
    verify=_verify,
)
