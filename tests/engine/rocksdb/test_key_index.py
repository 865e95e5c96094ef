"""The index of keys has the keys of the rows of listed spaces and no other, whatever happens to both."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from rocksdict import ReadOptions

from lazulite.engine.commit import Change, changing
from lazulite.engine.contract import LISTED, EngineError, EngineUnavailableError, KeyRange
from lazulite.engine.key_encoding import INDEX_START, META_PREFIX, encode_key, index_key
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.inspection import inspect
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.protocol.clock import system_clock

from .failing import Failpoints, writable_again

SPACE, OTHER = LISTED | 5, 5
SMALL = RocksSettings(write_bytes_max=4096, recovery_retry_seconds=0.001)
ALL = KeyRange(("", ""), None)


def write(rows: Mapping[str, bytes | None]) -> Change:
    return lambda current, timestamp: rows


async def put(engine: RocksEngine, space: int, rows: Mapping[str, bytes | None]) -> None:
    await engine.commit(space, "p", changing(list(rows), write(rows)))


def stored(engine: RocksEngine) -> list[bytes]:
    """Return the keys of the index."""
    database = engine._lifecycle.opened().database
    options = ReadOptions()
    options.set_iterate_upper_bound(META_PREFIX)
    return [key for key in database.keys(from_key=INDEX_START, read_opt=options) if isinstance(key, bytes)]


def index_of(space: int, rows: Sequence[str]) -> list[bytes]:
    return [index_key(encode_key(space, "p", row)) for row in rows]


async def test_only_a_listed_space_has_an_index_which_a_scan_of_keys_reads(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "store", system_clock)
    for space in (SPACE, OTHER):
        await put(engine, space, {"a": b"1", "b": b"2", "c": b"3"})
        await put(engine, space, {"a": b"new", "b": None})
    assert stored(engine) == index_of(SPACE, ["a", "c"])
    database = engine._lifecycle.opened().database
    database.put(index_of(SPACE, ["x"])[0], b"")
    for space, rows in ((SPACE, ["a", "c", "x"]), (OTHER, ["a", "c"])):
        found = [part async for part in engine.scan(space, [ALL], keys_only=True) if part.values]
        assert [(part.columns()[1], part.values) for part in found] == [(rows, [b""] * len(rows))]
    await engine.drop(SPACE)
    await engine.reclaimed()
    assert stored(engine) == []
    await engine.close()


@pytest.mark.parametrize("number", range(2, 12))
async def test_a_large_group_that_fails_leaves_the_index_of_its_rows(tmp_path: Path, number: int) -> None:
    failpoints = Failpoints()
    engine = RocksEngine.open(tmp_path / "store", system_clock, SMALL, failpoints=failpoints)
    old, new = ({f"{row:02}": bytes(900) for row in range(*some)} for some in ((0, 20, 2), (5, 25, 1)))
    await put(engine, SPACE, old)
    calls = 0

    def fail() -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            raise OSError

    failpoints.armed = {"before_write": fail}
    with pytest.raises(EngineUnavailableError):
        await put(engine, SPACE, new | {"00": None, "02": None})
    failpoints.armed.clear()
    await writable_again(engine)
    assert stored(engine) == index_of(SPACE, sorted(old))
    await engine.close()
    with inspect(tmp_path / "store") as inspection:
        assert len(list(inspection.rows())) == len(old)


@pytest.mark.parametrize("changed", ["lost", "added"])
async def test_an_index_that_is_not_that_of_the_rows_is_damage(tmp_path: Path, changed: str) -> None:
    path = tmp_path / "store"
    engine = RocksEngine.open(path, system_clock)
    await put(engine, SPACE, {"a": b"1", "b": b"2"})
    database = engine._lifecycle.opened().database
    if changed == "lost":
        database.delete(index_of(SPACE, ["b"])[0])
    else:
        database.put(index_of(SPACE, ["c"])[0], b"")
    await engine.close()
    with inspect(path) as inspection, pytest.raises(EngineError, match="its index of keys has"):
        list(inspection.rows())
