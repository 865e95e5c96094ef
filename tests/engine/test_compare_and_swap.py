import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from lazulite.engine.compare_and_swap import update_row
from lazulite.engine.contract import Engine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock


@pytest.fixture(name="engine")
async def _engine() -> AsyncIterator[Engine]:
    engine = RocksEngine.open(None, system_clock)
    yield engine
    await engine.close()


async def test_no_change_is_lost_among_many_at_once(engine: Engine) -> None:
    def more(current: bytes | None) -> Mapping[str, bytes | None]:
        return {"n": b"%d" % (int(current or b"0") + 1)}

    await asyncio.gather(*(update_row(engine, 1, "p", "n", more) for _ in range(30)))
    assert await engine.get(1, "p", "n") == b"30"


async def test_other_rows_change_with_it_and_a_rejection_changes_nothing(engine: Engine) -> None:
    await update_row(engine, 1, "p", "a", lambda current: {"a": b"1", "b": b"2"} if current is None else {})
    await update_row(engine, 1, "p", "a", lambda current: {"a": None, "c": current})
    assert [await engine.get(1, "p", row) for row in "abc"] == [None, b"2", b"1"]

    def reject(current: bytes | None) -> Mapping[str, bytes | None]:
        raise LookupError

    with pytest.raises(LookupError):
        await update_row(engine, 1, "p", "b", reject)
    assert await engine.get(1, "p", "b") == b"2"
