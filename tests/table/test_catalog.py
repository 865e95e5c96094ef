from pathlib import Path

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.contract import Engine, EngineUnavailableError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.errors import ServiceError
from lazulite.records.catalog import StoredAccessPolicy
from lazulite.records.spaces import FIRST_FREE_SPACE, TABLES, SpaceAllocator
from lazulite.table.catalog import Catalog
from tests.engine.rocksdb.failing import QUICK, Failpoints, writable_again


async def test_names_are_one_whatever_their_case(engine: Engine) -> None:
    catalog = Catalog(engine)
    table = await catalog.create("a", "People")
    assert await catalog.get("a", "pEOPLE") == table
    assert table.name == "People"
    with pytest.raises(ServiceError, match="TableAlreadyExists"):
        await catalog.create("a", "people")
    assert (await catalog.create("b", "people")).space != table.space


async def test_another_process_is_reported_by_the_commit_not_the_cache(engine: Engine) -> None:
    one, other = Catalog(engine), Catalog(engine)
    table = await one.create("a", "people")
    assert await other.get("a", "people") == table
    await one.delete("a", "people")
    with pytest.raises(ServiceError, match="ResourceNotFound"):
        await other.delete("a", "people")
    assert await other.get("a", "people") is None


async def test_a_dropped_table_is_empty_when_created_again(engine: Engine) -> None:
    catalog = Catalog(engine)
    first = await catalog.create("a", "people")
    await engine.commit(first.space, "p", changing(["r"], lambda _, __: {"r": b"x"}))
    await catalog.delete("a", "people")
    second = await catalog.create("a", "people")
    assert second.space != first.space
    assert await engine.get(second.space, "p", "r") is None
    assert await engine.get(first.space, "p", "r") is None


async def test_an_interrupted_drop_is_finished_at_the_next_start(engine: Engine) -> None:
    catalog = Catalog(engine)
    table = await catalog.create("a", "people")
    kept = await catalog.create("a", "kept")
    for space in (table.space, kept.space):
        await engine.commit(space, "p", changing(["r"], lambda _, __: {"r": b"x"}))
    # What a crash between the two steps of a deletion leaves:
    dropped = f"!{table.space}"
    await engine.commit(TABLES, "a", changing(["people", dropped], lambda _, __: {"people": None, dropped: b""}))
    assert [found.name async for found in catalog.list("a", "")] == ["kept"]
    await Catalog(engine).finish_drops()
    assert await engine.get(table.space, "p", "r") is None
    assert await engine.get(kept.space, "p", "r") == b"x"
    assert await engine.get(TABLES, "a", dropped) is None


async def test_a_deletion_that_failed_and_yet_took_effect_is_not_cached_wrongly(tmp_path: Path) -> None:
    """Else a table would be served whose rows the next start throws away."""
    failpoints = Failpoints()
    engine = RocksEngine.open(tmp_path / "store", system_clock, QUICK, failpoints=failpoints)
    catalog = Catalog(engine)
    await catalog.create("a", "people")
    failpoints.fail("before_sync", "IO error: No space left on device")
    with pytest.raises(EngineUnavailableError):
        await catalog.delete("a", "people")
    assert await catalog.get("a", "people") is not None
    failpoints.armed.clear()
    await writable_again(engine)
    assert (await catalog.get("a", "people") is None) == (await engine.get(TABLES, "a", "people") is None)
    await engine.close()


async def test_the_rows_of_dropped_tables_are_no_tables(engine: Engine) -> None:
    await engine.commit(TABLES, "a", changing(["!1024"], lambda _, __: {"!1024": b""}))
    catalog = Catalog(engine)
    assert await catalog.get("a", "!1024") is None
    with pytest.raises(ServiceError, match="ResourceNotFound"):
        await catalog.delete("a", "!1024")


async def test_policies_are_kept_and_seen_at_once(engine: Engine) -> None:
    catalog = Catalog(engine)
    await catalog.create("a", "people")
    policies = (StoredAccessPolicy("x", 1, 2, "r"), StoredAccessPolicy("y"))
    assert await catalog.policies("a", "people") == ()
    await catalog.set_policies("a", "PEOPLE", policies)
    assert await catalog.policies("a", "people") == policies
    assert await Catalog(engine).policies("a", "people") == policies
    assert await catalog.policies("a", "nobody") == ()
    with pytest.raises(ServiceError, match="ResourceNotFound"):
        await catalog.set_policies("a", "nobody", policies)


async def test_lists_are_in_order_and_start_anywhere(engine: Engine) -> None:
    catalog = Catalog(engine)
    for name in ("Beta", "alpha", "gamma"):
        await catalog.create("a", name)
    await catalog.create("aa", "other")
    assert [table.name async for table in catalog.list("a", "")] == ["alpha", "Beta", "gamma"]
    assert [table.name async for table in catalog.list("a", "beta")] == ["Beta", "gamma"]


async def test_spaces_are_never_given_twice(engine: Engine) -> None:
    given = [await SpaceAllocator(engine).allocate() for _ in range(5)]
    allocator = SpaceAllocator(engine)
    given += [await allocator.allocate() for _ in range(300)]
    assert len(set(given)) == len(given)
    assert min(given) == FIRST_FREE_SPACE
