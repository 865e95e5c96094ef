import asyncio
from collections.abc import AsyncIterator

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.contract import Engine, EngineUnavailableError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.errors import ServiceError
from lazulite.records.catalog import (
    KEPT_SECONDS,
    NamedResource,
    ResourceCatalog,
    RowCache,
    StoredAccessPolicy,
    TimeToLive,
)

SPACE = 900


class Shelf(ResourceCatalog[NamedResource]):
    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, SPACE, NamedResource, "ResourceNotFound", fold=str.casefold)

    async def create(self, account: str, name: str) -> NamedResource | None:
        return await self.add(account, name, lambda space: NamedResource(name, space), lambda _: None)


class Delegating:
    """An engine that does what another does, but for what a test replaces."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


class DropCrashes(Delegating):
    failure: Exception = InterruptedError()

    async def drop(self, space: int) -> None:
        raise self.failure


class DeletedAfterRead(Delegating):
    """An engine of which each first read of a row is followed by another process's deletion of the resource."""

    _deletes = True

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        value = await self._engine.get(space, partition, row)
        if self._deletes and value is not None and space == SPACE:
            self._deletes = False
            await Shelf(self._engine).delete(partition, row)
        return value


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    engine = RocksEngine.open(None, system_clock)
    yield engine
    await engine.close()


async def test_a_resource_is_found_by_every_spelling_of_its_name(engine: Engine) -> None:
    shelf = Shelf(engine)
    made = await shelf.create("a", "Books")
    assert made is not None
    assert await shelf.get("a", "bOOKS") == await Shelf(engine).read("a", "books") == made
    assert await shelf.create("a", "books") is None
    assert await shelf.get("b", "books") is None


async def test_a_resource_deleted_while_it_is_created_again_does_not_return_with_its_old_space(engine: Engine) -> None:
    made = await Shelf(engine).create("a", "books")
    assert made is not None
    slow = Shelf(DeletedAfterRead(engine))  # type: ignore[arg-type]  # It delegates what it does not have.
    await slow.create("a", "books")
    kept = await Shelf(engine).read("a", "books")
    assert kept is None or kept.space != made.space


async def test_a_cleared_resource_keeps_all_but_its_space(engine: Engine) -> None:
    shelf = Shelf(engine)
    made = await shelf.create("a", "books")
    assert made is not None
    await shelf.set_policies("a", "books", [StoredAccessPolicy("x", 1, 2, "r")])
    await engine.commit(made.space, "p", changing(["r"], lambda _, __: {"r": b"x"}))
    await shelf.clear("a", "books")
    cleared = await shelf.require("a", "books")
    assert cleared.space != made.space
    assert cleared.policies == (StoredAccessPolicy("x", 1, 2, "r"),)
    assert await engine.get(made.space, "p", "r") is None


async def test_changes_of_a_missing_resource_are_rejected(engine: Engine) -> None:
    shelf = Shelf(engine)
    await engine.commit(SPACE, "a", changing(["!1024"], lambda _, __: {"!1024": b""}))
    for name in ("books", "!1024"):
        for change in (shelf.delete, shelf.clear, shelf.require):
            with pytest.raises(ServiceError, match="ResourceNotFound"):
                await change("a", name)
        with pytest.raises(ServiceError, match="ResourceNotFound"):
            await shelf.set_policies("a", name, [])
        assert await shelf.policies("a", name) == ()


async def test_lists_have_the_names_with_a_prefix_from_a_marker_on(engine: Engine) -> None:
    shelf = Shelf(engine)
    for name in ("b", "Ba", "bb", "c"):
        await shelf.create("a", name)
    await shelf.create("a2", "ba")
    await engine.commit(SPACE, "a", changing(["!1024"], lambda _, __: {"!1024": b""}))
    assert [each.name async for each in shelf.list("a", "")] == ["b", "Ba", "bb", "c"]
    assert [each.name async for each in shelf.list("a", "", "b")] == ["b", "Ba", "bb"]
    assert [each.name async for each in shelf.list("a", "bb", "b")] == ["bb"]
    assert [each.name async for each in shelf.list("a", "c", "b")] == []
    assert [each.name async for each in shelf.all()] == ["b", "Ba", "bb", "c", "ba"]


def test_the_stored_form_is_json_of_the_fields() -> None:
    resource = NamedResource("Books", 2000, policies=(StoredAccessPolicy("x", 1, None, "r"),))
    stored = (
        b'{"name": "Books", "space": 2000, "policies": [{"id": "x", "start": 1, "expiry": null, "permission": "r"}]}'
    )
    assert resource.to_bytes() == stored
    assert NamedResource.from_bytes(stored) == resource


async def test_a_drop_that_a_crash_interrupts_is_marked_in_the_commit_that_deletes_the_resource(engine: Engine) -> None:
    made = await Shelf(engine).create("a", "books")
    assert made is not None
    await engine.commit(made.space, "p", changing(["r"], lambda _, __: {"r": b"x"}))
    crashing = Shelf(DropCrashes(engine))  # type: ignore[arg-type]  # It delegates what it does not have.
    with pytest.raises(InterruptedError):
        await crashing.delete("a", "books")
    assert await Shelf(engine).get("a", "books") is None
    assert await engine.get(made.space, "p", "r") == b"x"
    await Shelf(engine).finish_drops()
    assert await engine.get(made.space, "p", "r") is None


async def test_a_delete_is_done_though_the_store_cannot_drop_the_space_now(engine: Engine) -> None:
    made = await Shelf(engine).create("a", "books")
    assert made is not None
    await engine.commit(made.space, "p", changing(["r"], lambda _, __: {"r": b"x"}))
    busy = DropCrashes(engine)
    busy.failure = EngineUnavailableError("a node is away")
    await Shelf(busy).delete("a", "books")  # type: ignore[arg-type]  # as above
    assert await Shelf(engine).get("a", "books") is None
    assert await engine.get(made.space, "p", "r") == b"x"
    await Shelf(engine).finish_drops()
    assert await engine.get(made.space, "p", "r") is None


def _filled() -> RowCache[str, int]:
    cache: RowCache[str, int] = RowCache(entries_max=3)
    cache.fill("a", 1, cache.before_read())
    return cache


def test_a_change_evicts_its_row() -> None:
    cache = _filled()
    with cache.changing("a"):
        assert cache.get("a") == 1
    assert cache.get("a") is None


def test_a_read_from_before_a_change_is_not_cached() -> None:
    cache = _filled()
    before = cache.before_read()
    with cache.changing("b"):
        pass
    cache.fill("b", 2, before)
    assert cache.get("b") is None
    cache.fill("b", 2, cache.before_read())
    assert cache.get("b") == 2


@pytest.mark.parametrize("failure", [OSError(), asyncio.CancelledError()])
def test_an_unknown_outcome_is_read_through_until_a_change_succeeds(failure: BaseException) -> None:
    cache = _filled()
    with pytest.raises(type(failure)), cache.changing("a"):
        raise failure
    cache.fill("a", 1, cache.before_read())
    assert cache.get("a") is None
    with cache.changing("a"):
        pass
    cache.fill("a", 1, cache.before_read())
    assert cache.get("a") == 1


def test_a_rejection_is_a_known_outcome() -> None:
    cache = _filled()
    with pytest.raises(ServiceError), cache.changing("a"):
        raise ServiceError("ResourceNotFound")
    cache.fill("a", 1, cache.before_read())
    assert cache.get("a") == 1


def test_it_is_bounded_in_rows_and_in_doubts() -> None:
    cache = _filled()
    for number in range(10):
        cache.fill(str(number), number, cache.before_read())
    assert sum(cache.get(str(number)) is not None for number in range(10)) <= 3
    for number in range(3):
        with pytest.raises(OSError, match="x"), cache.changing(str(number)):
            raise OSError("x")
    cache.fill("z", 1, cache.before_read())
    assert cache.get("z") is None


def test_invalidated_row_is_not_cached_until_the_invalidation_ends() -> None:
    cache = _filled()
    before = cache.before_read()
    cache.begin_invalidation("a")
    assert cache.get("a") is None
    for moment in (before, cache.before_read()):
        cache.fill("a", 1, moment)
        assert cache.get("a") is None
    during = cache.before_read()
    cache.end_invalidation("a")
    cache.fill("a", 1, during)
    assert cache.get("a") is None, "read before the change was over"
    cache.fill("a", 2, cache.before_read())
    assert cache.get("a") == 2


def test_a_lifetime_counts_from_before_the_read() -> None:
    now_s = [5.0]
    cache: RowCache[str, int] = RowCache(ttl=TimeToLive(1.0, lambda: now_s[0]))
    before = cache.before_read()
    now_s[0] += 0.5  # So long the read took.
    cache.fill("a", 1, before)
    now_s[0] += 0.4
    assert cache.get("a") == 1
    now_s[0] += 0.2
    assert cache.get("a") is None
    cache.fill("a", 2, cache.before_read())
    assert cache.get("a") == 2


def test_with_a_lifetime_doubt_ends_with_it() -> None:
    now_s = [5.0]
    cache: RowCache[str, int] = RowCache(ttl=TimeToLive(1.0, lambda: now_s[0]))
    cache.fill("a", 1, cache.before_read())
    with pytest.raises(OSError, match="x"), cache.changing("a"):
        raise OSError("x")
    assert cache.get("a") is None
    cache.fill("a", 1, cache.before_read())
    assert cache.get("a") == 1
    now_s[0] += 1.0
    assert cache.get("a") is None


class Shared:
    """A cache of rows that other processes change, and the node that has the rows."""

    def __init__(self, patience_seconds: float = 1000.0) -> None:
        self.now_s = 0.0
        self.cache: RowCache[str, int] = RowCache(ttl=TimeToLive(1.0, lambda: self.now_s, patience_seconds))
        self.value: int | None = 1
        self.reads = 0
        self.away = self.silent = False
        self.answers = asyncio.Event()

    async def read(self) -> int | None:
        self.reads += 1
        before, value = self.cache.before_read(), self.value
        if self.silent:
            await self.answers.wait()
        if self.away:
            raise EngineUnavailableError("away")
        if value is None:
            self.cache.evict("a")
        else:
            self.cache.fill("a", value, before)
        return value

    async def look(self, at_s: float) -> int | None:
        """Look the row up at a time."""
        self.now_s = at_s
        value = self.cache.get("a")
        return await self.cache.renewed("a", self.read) if value is None else value


async def settled() -> None:
    """Let every task run as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_row_is_read_again_after_its_lifetime() -> None:
    shared = Shared()
    assert await shared.look(0) == 1
    shared.value = 2
    assert await shared.look(0.9) == 1
    assert await shared.look(1) == 2
    shared.value = None
    assert await shared.look(2) is None
    assert await shared.look(2) is None
    assert shared.reads == 4


async def test_a_row_of_a_node_that_is_away_is_used_for_thirty_seconds_after_its_read() -> None:
    shared = Shared()
    assert await shared.look(0) == 1
    shared.away, shared.value = True, 2
    for number in range(1, 43):
        assert await shared.look(number * 0.7) == 1
        await settled()
    assert 15 <= shared.reads <= KEPT_SECONDS, "at most a read a second"
    for at_s in (KEPT_SECONDS, KEPT_SECONDS + 0.5, 2 * KEPT_SECONDS):
        with pytest.raises(EngineUnavailableError):
            await shared.look(at_s)
    shared.away = False
    assert await shared.look(2 * KEPT_SECONDS) == 2


async def test_a_silent_node_is_asked_once_and_one_caller_waits_for_it() -> None:
    shared = Shared(patience_seconds=0)
    assert await shared.look(0) == 1
    shared.silent, shared.value = True, 2
    for at_s in (1, 1.5, 2.5, 3.5, 29):
        assert await asyncio.wait_for(shared.look(at_s), 60) == 1
    assert shared.reads == 2
    shared.answers.set()
    await settled()
    shared.silent = False
    assert await shared.look(29) == 2
    assert shared.reads == 3


async def test_no_caller_waits_after_a_failure() -> None:
    shared = Shared()
    assert await shared.look(0) == 1
    shared.away = True
    assert await shared.look(1) == 1
    shared.silent = True
    assert await asyncio.wait_for(shared.look(2.5), 10) == 1
    shared.answers.set()


async def test_callers_of_one_row_share_its_read() -> None:
    shared = Shared()
    assert await shared.look(0) == 1
    shared.silent, shared.value = True, 2
    looks = [asyncio.ensure_future(shared.look(1)) for _ in range(10)]
    await settled()
    looks[0].cancel()
    shared.answers.set()
    assert await asyncio.gather(*looks[1:]) == [2] * 9
    assert shared.reads == 2


async def test_a_row_that_was_changed_here_is_never_the_one_of_before() -> None:
    shared = Shared()
    assert await shared.look(0) == 1
    shared.silent = True
    early = asyncio.ensure_future(shared.look(1))
    await settled()
    with shared.cache.changing("a"):
        shared.value = 2
    shared.silent = False
    assert await shared.look(1) == 2
    shared.value = 3
    assert await asyncio.wait_for(shared.look(2), 10) == 3, "by a read of its own"
    shared.answers.set()
    assert await early == 1
    assert await shared.look(2) == 3
    shared.away = True
    with pytest.raises(EngineUnavailableError), shared.cache.changing("a"):
        raise EngineUnavailableError("away")
    with pytest.raises(EngineUnavailableError):
        await shared.look(2)


async def test_another_failure_than_an_absent_node_is_raised() -> None:
    shared = Shared()
    assert await shared.look(0) == 1

    async def read() -> int | None:
        raise ValueError("damaged")

    shared.now_s = 1
    with pytest.raises(ValueError, match="damaged"):
        await shared.cache.renewed("a", read)
