"""The rounds of several processes on one store: each hands in what it counted, and one of them balances.

    partition "rounds"    row "last"       the time of the last round
                          row "of {id}"    what a process has counted since a process balanced

Invariants:
- of the processes that take part in a round, one is chosen, by the commit that moves the time of the last round. It
  needs no lease: if it dies, another one is chosen a round later;
- what a process handed in counts in one round, whichever process balances, and whether or not it lives by then;
- a row that is damaged is replaced.
"""

import struct
from contextlib import aclosing, suppress
from math import isfinite
from typing import NamedTuple

from lazulite.engine.commit import Commit, Decision, Values
from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.partitions import load_codec
from lazulite.partitions.load_codec import LoadError, Loads
from lazulite.records.spaces import PARTITION_ROUNDS, Space

PARTITION = "rounds"
LAST = "last"
_OF, _AFTER_OF = "of ", "of!"
_TIME = struct.Struct(">d")
_SET_BACK_ROUNDS = 1_000
"""A last round that lies so many rounds ahead is of a clock that was wrong."""


class Total(NamedTuple):
    """What the chosen process balances by."""

    loads: Loads
    """The loads of all processes."""
    seconds: float
    """The time in which they were counted."""


class Rounds:
    """The rounds of a store, as one of its processes takes part in them.

    Args:
        engine: holds the rows.
        process: what tells this process from all others.
    """

    def __init__(self, engine: Engine, process: str) -> None:
        self._engine = engine
        self._row = f"{_OF}{process}"

    async def submit(self, loads: Loads, now: float, seconds: float) -> Total | None:
        """Hand in what this process has counted since its last call; return the total if it is to balance.

        Args:
            loads: what it counted.
            now: the time in seconds.
            seconds: the time between two rounds.

        Raises:
            EngineError: the store cannot be reached. Then the loads may be handed in again.
        """
        row = self._row

        def decide(values: Values, _: int) -> Decision[float | None]:
            last, before = values
            at = None if last is None else _time(last)
            since = seconds if at is None else now - at
            is_chosen = since >= seconds or since < -_SET_BACK_ROUNDS * seconds
            changes: dict[str, bytes | None] = {LAST: _TIME.pack(now)} if is_chosen else {}
            if loads:
                changes[row] = load_codec.encode(load_codec.continued(_decoded(before), loads))
            return Decision(changes, since if is_chosen else None)

        since = await self._engine.commit(PARTITION_ROUNDS, PARTITION, Commit([LAST, row], decide))
        if since is None:
            return None
        # A store that was at rest longer has no counts of that time.
        return Total(await self._take(), since if seconds <= since < 2 * seconds else seconds)

    async def _take(self) -> Loads:
        """Return what all processes have handed in, and remove it."""
        within = KeyRange((PARTITION, _OF), (PARTITION, _AFTER_OF))
        async with aclosing(self._engine.scan(PARTITION_ROUNDS, [within], keys_only=True)) as slices:
            rows = [part.key(index)[1] async for part in slices for index in range(len(part.values))]
        total: Loads = {}
        for row in rows:
            value = await self._engine.commit(PARTITION_ROUNDS, PARTITION, _taking(row))
            total = load_codec.added(total, _decoded(value))
        return total


def _taking(row: str) -> Commit[bytes | None]:
    """Return a commit that removes a row, and returns what it was."""
    return Commit([row], lambda values, _: Decision({} if values[0] is None else {row: None}, values[0]))


def _time(value: bytes) -> float | None:
    """Return the time of the last round; None if the row is damaged."""
    if len(value) != _TIME.size:
        return None
    (at,) = _TIME.unpack(value)
    return float(at) if isfinite(at) else None


def _decoded(value: bytes | None) -> Loads:
    with suppress(LoadError):
        return load_codec.decode(value or b"")
    return {}


def _verify(key: Key, value: bytes) -> None:
    if key[0] != PARTITION or not (key[1] == LAST or key[1].startswith(_OF)):
        raise ValueError(f"unknown row {key}")
    if key[1] != LAST:
        load_codec.decode(value)
    elif _time(value) is None:
        raise ValueError("the row is no time")


ROUNDS_SPACE = Space(number=PARTITION_ROUNDS, owner="table", title="the rounds of the balancer", verify=_verify)
