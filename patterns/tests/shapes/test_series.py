"""Series of numbers, on the service."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EntityProperty, TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns import EntityFormatError, EntityValueError, SchemaError
from lazulite_patterns.aio.shapes import Series as AsyncSeries
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Stored, Write
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.shapes import Series
from lazulite_patterns.shapes.protocols.series import SeriesProtocol
from lazulite_patterns_simulation import Crash, FaultAt, InvariantError, Simulation, World, every_fault, explore

from .support import QUICK, counting, driver, empty, rows

KEY = EntityKey("jones", "2014-07-31")
PATIENT = Policy(deadline_seconds=3600, first_wait_seconds=0.002, wait_max_seconds=0.1, marks=16)
"""Writers of one row overtake each other many times on a busy machine."""


@pytest.mark.parametrize("shards", [1, 8])
def test_concurrent_adds_are_exact(table_client: TableClient, shards: int) -> None:
    series = Series(table_client, 24, int, shards=shards, policy=PATIENT)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: series.add(KEY, number % 24, number), range(160)))
    found = series.get(KEY)
    assert found == [sum(range(slot, 160, 24)) for slot in range(24)]
    assert len(rows(table_client)) <= shards


@pytest.mark.parametrize("value", [1.5, float("nan"), float("inf"), "1", True])
def test_a_slot_of_another_program_that_is_no_number_of_the_kind_is_an_error(value: object) -> None:
    simulation = Simulation()
    insert = Write("t", Operation(Kind.INSERT, KEY, {"S0": value, "S1": 2.0}))
    simulation.world, _ = simulation.world.perform(insert)
    series = SeriesProtocol("t", 2, int)
    for protocol in (series.get(KEY), series.add(KEY, {0: 1})):
        with pytest.raises(EntityFormatError, match="S0"):
            simulation.run(protocol)
    simulation.run(series.add(KEY, {1: 1}))


async def test_concurrent_adds_of_asynchronous_programs_are_exact(
    connection_string: str, table_client: TableClient
) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        series = AsyncSeries(client, 2, float, policy=PATIENT)
        await asyncio.gather(*(series.add_all(KEY, {0: 0.5, 1: 1.0}) for _ in range(40)))
        assert await series.get(KEY) == [20.0, 40.0]
        await series.put(KEY, {1: -1.5})
        await series.add(KEY, 0, 0.5)
        assert await series.get(KEY) == [20.5, -1.5]


def test_a_series_is_an_entity_that_any_program_reads(table_client: TableClient) -> None:
    hours = Series(table_client, 24, int, name="Hour")
    assert hours.get(KEY) is None
    hours.add(KEY, 7, 2**40)
    hours.put(KEY, {8: 3, 0: -1})
    stored = table_client.get_entity(*KEY)
    assert stored["Hour07"] == EntityProperty(2**40, "Edm.Int64")
    assert hours.get(KEY) == [-1, *[0] * 6, 2**40, 3, *[0] * 15]
    table_client.upsert_entity({**stored, "Hour00": 4, "Other": "x"})
    hours.add(KEY, 0, 1)
    assert table_client.get_entity(*KEY)["Other"] == "x"
    found = hours.get(KEY)
    assert found is not None
    assert found[0] == 5, "an Int32 of another program is a number"
    table_client.upsert_entity({**stored, "Hour00": "many"})
    with pytest.raises(EntityFormatError, match="Hour00"):
        hours.get(KEY)


def test_shards_do_not_meet_other_series(table_client: TableClient) -> None:
    series = Series(table_client, 2, int, shards=3)
    for key in (KEY, EntityKey("jones", "2014-07-31!00"), EntityKey("jones", "2014-07-31 b")):
        for _ in range(20):
            series.add(key, 1, 1)
    table_client.upsert_entity({"PartitionKey": "jones", "RowKey": "2014-07-31!0x", "S1": 7})
    assert series.get(KEY) == [0, 20]
    assert len(rows(table_client)) == 10, "each shard was used"
    with pytest.raises(ValueError, match="shards"):
        series.put(KEY, {0: 1})


def test_bad_input_is_rejected_before_it_is_sent(table_client: TableClient) -> None:
    count = counting()
    series = Series(table_client, 24, int, runtime=Runtime(failpoints=count))
    for slot, amount, message in ((24, 1, "S24"), (-1, 1, "S-1"), (3, 2**63, "S03"), (3, 1.5, "S03"), (3, True, "S03")):
        with pytest.raises(EntityValueError, match=message):
            series.add(KEY, slot, amount)  # type: ignore[arg-type] # as a wrong program does
    for key in (EntityKey("a/b", "r"), EntityKey("p", "x" * 1025)):
        with pytest.raises(EntityValueError, match="Key"):
            series.add(key, 0, 1)
    with pytest.raises(EntityValueError, match="RowKey"):
        Series(table_client, 24, int, shards=2, runtime=Runtime(failpoints=count)).add(EntityKey("p", "x" * 1022), 0, 1)
    assert count.count == 0
    series.add(KEY, 0, 2**63 - 1)
    with pytest.raises(EntityValueError, match="S00"):
        series.add(KEY, 0, 1)
    assert series.get(KEY) == [2**63 - 1, *[0] * 23]


@pytest.mark.parametrize(("marks", "most"), [(4, 251), (0, 252)])
def test_a_series_has_as_many_slots_as_the_service_allows(table_client: TableClient, marks: int, most: int) -> None:
    policy = Policy(marks=marks)
    with pytest.raises(SchemaError, match=f"1 to {most}"):
        Series(table_client, most + 1, int, policy=policy)
    Series(table_client, most, int, policy=policy).add_all(KEY, dict.fromkeys(range(most), 1))
    with pytest.raises(HttpResponseError):
        table_client.update_entity({**KEY._asdict(), "PartitionKey": KEY[0], "RowKey": KEY[1], "One": 1, "Two": 2})
    for wrong in (partial(Series, name="a b"), partial(Series, name="x" * 253), partial(Series, shards=101)):
        with pytest.raises(SchemaError):
            wrong(table_client, 200, int)


@pytest.mark.parametrize("shards", [1, 2])
def test_every_fault_counts_once_or_not_at_all(table_client: TableClient, shards: int) -> None:
    protocol = SeriesProtocol(table_client.table_name, 2, int, shards=shards, policy=QUICK)

    def rival() -> None:
        driver(table_client).run(protocol.add(KEY, {0: 10}))

    def attempt(fault: FaultAt) -> None:
        empty(table_client)
        driver(table_client).run(protocol.add(KEY, {0: 1}))
        crashed = False
        try:
            driver(table_client, fault).run(protocol.add(KEY, {0: 1, 1: 1}))
        except Crash:
            crashed = True
        before = 11 if fault.rival is not None and fault.hit and fault.fault.name == "RIVAL" else 1
        found = driver(table_client).run(protocol.get(KEY))
        assert found in ([[before, 0], [before + 1, 1]] if crashed else [[before + 1, 1]])

    assert sum(1 for _ in every_fault(attempt, rival)) >= 14


class Unconditional(SeriesProtocol[int]):
    """Writes the sum whatever is there."""

    def _sum(self, place: EntityKey, base: Stored | None, amounts: object) -> Planned:
        planned = super()._sum(place, base, amounts)  # type: ignore[arg-type] # as given
        return Planned(Operation(Kind.PUT_MERGE, place, planned.operation.properties))


def adding(kind: type[SeriesProtocol[int]]) -> Protocol[None]:
    yield from kind("t", 2, int, policy=Policy(marks=0)).add(KEY, {1: 1})
    yield from perform(Write("done", Operation(Kind.PUT, EntityKey("d", ""))))


def counted(world: World) -> None:
    done = world.entity("done", EntityKey("d", ""))
    series = world.entity("t", KEY)
    value = series.properties["S1"] if series is not None else EntityProperty(0, "Edm.Int64")
    assert isinstance(value, EntityProperty)
    assert value.value >= (0 if done is None else int(done.etag.split('"')[1])), "an add is lost"


def test_no_add_is_lost_in_any_interleaving() -> None:
    explored = explore(World(), [partial(adding, SeriesProtocol)] * 3, counted)
    assert explored.states_count > 20
    with pytest.raises(InvariantError):
        explore(World(), [partial(adding, Unconditional)] * 2, counted)
