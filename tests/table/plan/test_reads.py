"""Each point query that has a plan reads the engine once, whether it finds an entity, a large one or none."""

import json

import pytest

from lazulite.engine.contract import UNKNOWN, Unknown
from lazulite.table.model.row import LARGE_BYTES
from lazulite.table.query.page import Page
from lazulite.table.responses import server_timing

from .test_mutations import warm
from .world import ENTITY, World

LARGE = {f"S{number}": "a" * 32_000 for number in range(3)}
MISSING = "orders(PartitionKey='p',RowKey='none')"


class Reads:
    """Counts the reads of an engine."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        self.waits = False
        engine, get, get_now = world.engine, world.engine.get, world.engine.get_now

        async def noted_get(space: int, partition: str, row: str) -> bytes | None:
            self.made.append("get")
            return await get(space, partition, row)

        def noted_get_now(space: int, partition: str, row: str) -> bytes | Unknown | None:
            self.made.append("get_now")
            return UNKNOWN if self.waits else get_now(space, partition, row)

        monkeypatch.setattr(engine, "get", noted_get)
        monkeypatch.setattr(engine, "get_now", noted_get_now)


@pytest.fixture(name="world")
async def _world() -> World:
    world = await World().prepare()
    await warm(world)
    return world


@pytest.fixture(name="reads")
def _reads(world: World, monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(world, monkeypatch)


async def test_an_entity_is_read_once(world: World, reads: Reads) -> None:
    immediate = world.immediate
    assert (await world.ask("GET", ENTITY)).status == 200
    assert (reads.made, world.immediate) == (["get_now"], immediate + 1)


async def test_a_missing_entity_is_looked_for_once_and_rejected_at_once(world: World, reads: Reads) -> None:
    immediate = world.immediate
    rejected = await world.ask("GET", MISSING)
    assert (reads.made, world.immediate) == (["get_now"], immediate + 1)
    slowly = await world.ask("GET", MISSING, steady=False)
    assert (rejected.status, rejected.error_code) == (404, "ResourceNotFound")
    assert rejected == slowly


async def test_a_large_entity_is_read_once_and_written_in_steps(world: World, reads: Reads) -> None:
    await world.ask("PUT", ENTITY, body=LARGE)
    reads.made.clear()
    immediate = world.immediate
    answer = await world.ask("GET", ENTITY)
    assert len(answer.body) > LARGE_BYTES
    assert (reads.made, world.immediate) == (["get_now"], immediate)
    assert json.loads(answer.body)["S2"] == LARGE["S2"]
    assert answer == await world.ask("GET", ENTITY, steady=False)


async def test_what_the_engine_has_to_wait_for_is_read_in_the_long_way(world: World, reads: Reads) -> None:
    reads.waits = True
    assert (await world.ask("GET", ENTITY)).status == 200
    assert (await world.ask("GET", MISSING)).status == 404
    assert reads.made == ["get_now", "get"] * 2


async def test_the_row_of_one_request_serves_no_other(world: World, reads: Reads) -> None:
    await world.ask("PUT", ENTITY, body=LARGE)
    await world.ask("GET", ENTITY)
    await world.ask("PUT", ENTITY, body={**LARGE, "S2": "changed"})
    reads.made.clear()
    assert b'"S2":"changed"' in (await world.ask("GET", ENTITY)).body
    assert reads.made == ["get_now"]


async def test_the_time_of_the_read_is_reported_with_a_large_entity(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.ask("PUT", ENTITY, body=LARGE)
    get_now = world.engine.get_now

    def slow(space: int, partition: str, row: str) -> bytes | Unknown | None:
        world.monotonic_s += 0.25
        return get_now(space, partition, row)

    monkeypatch.setattr(world.engine, "get_now", slow)
    timing = (await world.ask("GET", ENTITY)).field("Server-Timing")
    assert timing == server_timing("point", Page([b""], scanned=1), 0.25)
