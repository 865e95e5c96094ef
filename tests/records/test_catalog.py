from collections.abc import AsyncIterator

import pytest

from lazulite.engine.contract import Engine, EngineUnavailableError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.errors import ServiceError
from lazulite.records.catalog import NamedResource, ResourceCatalog, StoredAccessPolicy

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
    await engine.commit(made.space, "p", ["r"], lambda _, __: {"r": b"x"})
    await shelf.clear("a", "books")
    cleared = await shelf.require("a", "books")
    assert cleared.space != made.space
    assert cleared.policies == (StoredAccessPolicy("x", 1, 2, "r"),)
    assert await engine.get(made.space, "p", "r") is None


async def test_changes_of_a_missing_resource_are_rejected(engine: Engine) -> None:
    shelf = Shelf(engine)
    await engine.commit(SPACE, "a", ["!1024"], lambda _, __: {"!1024": b""})
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
    await engine.commit(SPACE, "a", ["!1024"], lambda _, __: {"!1024": b""})
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
    await engine.commit(made.space, "p", ["r"], lambda _, __: {"r": b"x"})
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
    await engine.commit(made.space, "p", ["r"], lambda _, __: {"r": b"x"})
    busy = DropCrashes(engine)
    busy.failure = EngineUnavailableError("a node is away")
    await Shelf(busy).delete("a", "books")  # type: ignore[arg-type]  # as above
    assert await Shelf(engine).get("a", "books") is None
    assert await engine.get(made.space, "p", "r") == b"x"
    await Shelf(engine).finish_drops()
    assert await engine.get(made.space, "p", "r") is None
