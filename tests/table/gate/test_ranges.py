"""Pages of queries and the ranges of a table: where pages end, and that nothing else differs."""

from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lazulite.engine.contract import Engine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.partitions.ranges import Range, RangeMap
from lazulite.protocol.clock import system_clock
from lazulite.table.indexes.definition import Scope
from tests.table.client import ACCOUNT, values
from tests.table.gate.world import WIDE, World, continuation, pages
from tests.table.indexes.builders import builder_of

KEYS = [f"{first}{second}" for first in "abcd" for second in "wxyz"]
FILTERS = (
    "",
    "PartitionKey eq 'bx'",
    "PartitionKey eq 'bx' and RowKey gt '1'",
    "PartitionKey eq 'aw' or PartitionKey eq 'dz'",
    "PartitionKey gt 'az'",
    "PartitionKey ge 'b' and PartitionKey lt 'd'",
    "PartitionKey ge 'by' and RowKey eq '1'",
    "PartitionKey le 'cx' and not (PartitionKey eq 'bx')",
    "V eq 1",
    "V eq 3",
    "RowKey eq '2'",
    "PartitionKey gt 'zz'",
)


@pytest.fixture(name="world")
async def _world(engine: Engine) -> World:
    world = World(engine, WIDE)
    await world.client("POST", "Tables", body={"TableName": "Orders"})
    for key in ("a", "b", "m", "n", "z"):
        await world.insert(key)
    return world


async def test_pages_end_with_ranges(world: World) -> None:
    assert len(await pages(world.client)) == 1
    await world.divide("b", "c", "n")
    found = await pages(world.client)
    assert [[row["PartitionKey"] for row in page] for page in found] == [["a"], ["b"], ["m"], ["n", "z"]]
    assert [len(page) for page in await pages(world.client, "$top=1")] == [1, 1, 1, 1, 1]


async def test_an_empty_range_is_an_empty_page_with_a_token(world: World) -> None:
    await world.divide("b", "c", "d", "n")
    assert [len(page) for page in await pages(world.client)] == [1, 1, 0, 1, 2]
    first = await world.client("GET", "Orders()", "$filter=PartitionKey%20ge%20'c'")
    assert (values(first), continuation(first) is None) == ([], False)


async def test_a_filter_that_matches_nothing_in_a_range_is_an_empty_page_with_a_token(world: World) -> None:
    await world.divide("m", "z")
    assert [len(page) for page in await pages(world.client, "$filter=PartitionKey%20eq%20'z'%20or%20V%20eq%201")] == [
        0,
        0,
        1,
    ]


async def test_a_query_of_one_partition_never_crosses(world: World) -> None:
    await world.divide("b", "m", "n")
    for key in ("a", "b", "m", "n", "z", "none"):
        response = await world.client("GET", "Orders()", f"$filter=PartitionKey%20eq%20'{key}'")
        assert continuation(response) is None
    both = await pages(world.client, "$filter=PartitionKey%20eq%20'a'%20or%20PartitionKey%20eq%20'z'")
    assert [len(page) for page in both] == [1, 1]


async def test_no_rows_are_asked_for_and_no_token_is_given(world: World) -> None:
    await world.divide("m")
    assert continuation(await world.client("GET", "Orders()", "$top=0")) is None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
async def test_any_map_leaves_the_rows_as_they_are(data: st.DataObject) -> None:
    """Read a query by its tokens while ranges split, merge and move; compare with a server without a map.

    Now and then, an index serves the query.
    """
    engine = RocksEngine.open(None, system_clock)
    world = World(engine, WIDE)
    await world.client("POST", "Tables", body={"TableName": "Orders"})
    rows = data.draw(st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from("123")), unique=True, max_size=30))
    for number, (partition, row) in enumerate(rows):
        await world.insert(partition, row, V=number % 4)
    if not rows:
        await world.insert("aw", "1")
    if data.draw(st.booleans()):
        builder = builder_of(engine, world.client)
        await builder.create(ACCOUNT, "Orders", "values", ["V"], data.draw(st.sampled_from(list(Scope))))
        async for _ in builder.build(ACCOUNT, "Orders", "values"):
            pass
    (table,) = world.live.maps
    text, top = data.draw(st.sampled_from(FILTERS)), data.draw(st.sampled_from(["", "$top=1", "$top=4", "$top=1000"]))
    query = "&".join(filter(None, (f"$filter={quote(text)}" if text else "", top)))
    expected = [row for page in await pages(world.plain, query) for row in page]
    found: list[dict[str, object]] = []
    more: str | None = ""
    boundaries = st.lists(st.sampled_from([*KEYS, "a", "b", "bx\0", "c", "zz"]), unique=True, max_size=6)
    while more is not None:
        starts = ["", *sorted(data.draw(boundaries))]
        world.maps.given[table] = RangeMap(tuple(Range(start, n % 4, 0) for n, start in enumerate(starts)))
        world.now += 15
        await world.live.refresh()
        response = await world.client("GET", "Orders()", "&".join(filter(None, (query, more))))
        page = values(response)
        assert len({_range_of(starts, str(row["PartitionKey"])) for row in page}) <= 1
        found += page
        more = continuation(response)
        assert more is None or not text.startswith("PartitionKey eq 'bx'") or top
    assert found == expected
    await engine.close()


def _range_of(starts: list[str], key: str) -> str:
    return max(start for start in starts if start <= key)
