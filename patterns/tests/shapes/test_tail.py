"""Log tails, on the service."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lazulite_patterns import EntityValueError
from lazulite_patterns.aio.shapes import Tail as AsyncTail
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.shapes import Tail
from lazulite_patterns.shapes.protocols.tail import TailProtocol, every_time
from lazulite_patterns_simulation import Crash, FaultAt, every_fault

from ..short_pages import ShortPages
from .support import QUICK, counting, driver, empty, rows

NOON = datetime(2014, 7, 31, 12, tzinfo=UTC)


def numbers(entries: list[object]) -> list[object]:
    return [each.properties["N"] for each in entries]  # type: ignore[attr-defined] # entries


def test_the_newest_are_first_with_equal_ticks(table_client: TableClient) -> None:
    tail = Tail(table_client, runtime=Runtime(utc_now=lambda: NOON))
    for number in range(12):
        tail.append("jones", {"N": number})
    tail.append("smith", {"N": -1})
    assert numbers([*tail.latest("jones", 20)]) == list(range(11, -1, -1))
    assert numbers([*tail.latest("jones", 3)]) == [11, 10, 9]
    assert tail.latest("brown", 3) == []
    newest = tail.latest("jones", 1)[0]
    assert newest.time == NOON
    assert newest.properties["RowKey"] == newest.key.row_key
    # Another process appends an event of the same time later.
    other = Tail(table_client, runtime=Runtime(utc_now=lambda: NOON + timedelta(seconds=1)))
    other.append("jones", {"N": 12}, NOON)
    assert numbers([*tail.latest("jones", 2)]) == [12, 11]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seconds=st.lists(st.integers(-3, 3), max_size=12), bounds=st.tuples(st.integers(-4, 4), st.integers(-4, 4)))
def test_a_log_is_its_events_sorted_by_time_and_order(
    table_client: TableClient, seconds: list[int], bounds: tuple[int, int]
) -> None:
    empty(table_client)
    tail = Tail(table_client)
    for number, each in enumerate(seconds):
        tail.append("p", {"N": number}, NOON + timedelta(seconds=each))
    order = sorted(range(len(seconds)), key=lambda number: (seconds[number], number), reverse=True)
    pages: list[object] = []
    after = None
    while found := tail.latest("p", 5, after=after):
        pages += found
        after = found[-1].key
    assert numbers(pages) == order
    first, last = (NOON + timedelta(seconds=each) for each in bounds)
    between = [each for each in order if bounds[0] <= seconds[each] <= bounds[1]]
    assert numbers([*tail.between("p", first, last)]) == between
    assert tail.trim("p", first) == sum(each < bounds[0] for each in seconds)
    assert numbers([*tail.latest("p", 50)]) == [each for each in order if seconds[each] >= bounds[0]]


def test_other_rows_of_a_partition_stay(table_client: TableClient) -> None:
    tail = Tail(table_client)
    for name in ("!a", "000", "A", "zz"):
        table_client.create_entity({"PartitionKey": "p", "RowKey": name})
    for number in range(105):
        tail.append("p", {"N": number}, NOON)
    assert len(tail.latest("p", 500)) == 105
    assert tail.trim("p", NOON) == 0
    assert tail.trim("p", NOON + timedelta(microseconds=1)) == 105
    assert rows(table_client) == ["!a", "000", "A", "zz"]


def test_bad_input_is_rejected_before_it_is_sent(table_client: TableClient) -> None:
    count = counting()
    tail = Tail(table_client, runtime=Runtime(failpoints=count))
    for partition, properties, time, message in (
        ("a/b", {}, None, "PartitionKey"),
        ("p", {"a b": 1}, None, "a b"),
        ("p", {"T": "x" * 32_769}, None, r"\.T"),
        ("p", {}, datetime(2014, 7, 31), "time"),
        ("p", {f"P{number}": 1 for number in range(252)}, None, "253 properties"),
    ):
        with pytest.raises(EntityValueError, match=message):
            tail.append(partition, properties, time)
    for call in (lambda: tail.latest("a#", 1), lambda: tail.trim("a#", NOON)):
        with pytest.raises(EntityValueError, match="PartitionKey"):
            call()
    assert count.count == 0
    tail.append("p", {f"P{number}": 1 for number in range(251)})


def test_every_fault_appends_once(table_client: TableClient) -> None:
    protocol = TailProtocol(table_client.table_name, QUICK)

    def attempt(fault: FaultAt) -> None:
        empty(table_client)
        crashed = False
        try:
            driver(table_client, fault).run(protocol.append("p", {"N": 1}, NOON, 0))
        except Crash:
            crashed = True
        assert len(rows(table_client)) in ({0, 1} if crashed else {1})

    assert sum(1 for _ in every_fault(attempt)) >= 6


@pytest.mark.parametrize("sizes", [[0], [0, 0, 2], [3, 0]])
def test_empty_and_short_pages_of_the_service(sizes: list[int]) -> None:
    simulation = ShortPages(sizes)
    protocol = TailProtocol("t")
    for number in range(7):
        simulation.run(protocol.append("p", {"Number": number}, NOON + timedelta(seconds=number), number))
    found = simulation.run(protocol.page("p", every_time(), 5, None))
    assert [each.properties["Number"] for each in found.entries] == [6, 5, 4, 3, 2]
    assert simulation.run(protocol.trim("p", NOON + timedelta(seconds=4))) == 4
    assert [each.properties["Number"] for each in simulation.world.entities("t")] == [6, 5, 4]


def test_every_fault_of_a_trim_leaves_a_log_that_is_trimmed_again(table_client: TableClient) -> None:
    protocol = TailProtocol(table_client.table_name, QUICK)

    def attempt(fault: FaultAt) -> None:
        empty(table_client)
        for number in range(4):
            driver(table_client).run(protocol.append("p", {"N": number}, NOON + timedelta(seconds=number), number))
        try:
            driver(table_client, fault).run(protocol.trim("p", NOON + timedelta(seconds=2)))
        except Crash:
            driver(table_client).run(protocol.trim("p", NOON + timedelta(seconds=2)))
        assert len(rows(table_client)) == 2

    assert sum(1 for _ in every_fault(attempt)) >= 12


async def test_asynchronous_programs_have_the_same(connection_string: str, table_client: TableClient) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        tail = AsyncTail(client)
        for number in range(3):
            await tail.append("p", {"N": number}, NOON)
        assert numbers([*await tail.latest("p", 2)]) == [2, 1]
        assert numbers([each async for each in tail.between("p", NOON, NOON)]) == [2, 1, 0]
        assert await tail.trim("p", datetime.now(UTC)) == 3
