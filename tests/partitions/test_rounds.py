"""Rounds of several processes: whatever the store has of earlier ones, they go on."""

import struct

import pytest

from lazulite.engine.commit import put_rows
from lazulite.engine.contract import Engine
from lazulite.partitions.load import RangeLoad
from lazulite.partitions.load_codec import encode
from lazulite.partitions.ranges import TableKey
from lazulite.partitions.rounds import LAST, PARTITION, ROUNDS_SPACE, Rounds
from lazulite.records.spaces import PARTITION_ROUNDS

LOADS = {TableKey("acct", "orders", 1024): {"": RangeLoad(7)}}


async def put(engine: Engine, row: str, value: bytes) -> None:
    await engine.commit(PARTITION_ROUNDS, PARTITION, put_rows({row: value}))


@pytest.mark.parametrize("last", [b"", b"x" * 8 + b"y", struct.pack(">d", float("nan")), struct.pack(">d", 1e12)])
async def test_a_last_round_that_cannot_be_is_none(memory: Engine, last: bytes) -> None:
    """It is damaged, or of a clock that was set back by days."""
    await put(memory, LAST, last)
    total = await Rounds(memory, "one").submit(LOADS, 100, 15)
    assert total == (LOADS, 15)
    assert await Rounds(memory, "two").submit({}, 114, 15) is None


async def test_damaged_loads_are_none(memory: Engine) -> None:
    await put(memory, "of two", b"{")
    await put(memory, "of one", b"{")
    assert await Rounds(memory, "one").submit(LOADS, 100, 15) == (LOADS, 15)


async def test_a_clock_that_is_a_little_behind_waits(memory: Engine) -> None:
    assert await Rounds(memory, "one").submit({}, 100, 15) is not None
    assert await Rounds(memory, "two").submit({}, 40, 15) is None


@pytest.mark.parametrize(("now", "seconds"), [(115, 15), (129, 29), (130, 15), (86_500, 15)])
async def test_loads_are_of_the_time_since_the_last_round(memory: Engine, now: float, seconds: float) -> None:
    """Those after a rest of the whole store were counted in the latest round."""
    one = Rounds(memory, "one")
    await one.submit({}, 100, 15)
    total = await one.submit(LOADS, now, 15)
    assert total is not None
    assert total.seconds == seconds


def test_rows_are_verified() -> None:
    verify = ROUNDS_SPACE.verify
    assert verify is not None
    verify((PARTITION, LAST), struct.pack(">d", 1.5))
    verify((PARTITION, "of one"), encode(LOADS))
    for partition, row, value in (
        ("x", LAST, b""),
        (PARTITION, LAST, b""),
        (PARTITION, "of x", b"{"),
        (PARTITION, "x", b""),
    ):
        with pytest.raises(ValueError, match=r".+"):
            verify((partition, row), value)
