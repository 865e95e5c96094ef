"""Streams on the service: Streamstone's rows, projections, writers at one time, the auditor."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.data.tables import EdmType, EntityProperty, TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns import Column, entity, partition, row
from lazulite_patterns.aio.streams import Stream as AsyncStream
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.auditing.walk import FOREIGN
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.keys import literal, text
from lazulite_patterns.outcomes import Conflict
from lazulite_patterns.streams import AppendTooLarge, Event, Recorded, Stream, WrongVersion, checks
from lazulite_patterns.streams.protocol import StreamProtocol
from lazulite_patterns.table.transaction import Transaction
from lazulite_patterns_simulation import Fault, FaultAt

from ..short_pages import ShortPages


@entity
class Balance:
    account: Column[str] = partition()
    name: Column[str] = row(literal("balance"), text())
    cents: Column[int]


def rows(client: TableClient) -> dict[str, dict[str, Any]]:
    return {each["RowKey"]: {**each} for each in client.list_entities()}


def test_the_rows_are_those_of_streamstone(table_client: TableClient) -> None:
    stream = Stream(table_client, "account-17")
    assert stream.append([Event({"Type": "Opened", "Data": "{}"}, "e1"), Event({"Type": "Paid"}, "e2")]) == 2
    found = rows(table_client)
    assert sorted(found) == ["SS-HEAD", "SS-SE-0000000001", "SS-SE-0000000002", "SS-UID-e1", "SS-UID-e2"]
    event = found["SS-SE-0000000001"]
    assert (event["PartitionKey"], event["Id"], event["Type"], event["Data"]) == ("account-17", "e1", "Opened", "{}")
    two = EntityProperty(2, EdmType.INT64)
    assert found["SS-HEAD"]["Version"] == found["SS-SE-0000000002"]["Version"] == found["SS-UID-e2"]["Version"] == two


def test_a_stream_of_streamstone_goes_on_in_its_types(table_client: TableClient) -> None:
    key = {"PartitionKey": "s"}
    table_client.create_entity({**key, "RowKey": "SS-HEAD", "Version": 2, "Owner": "Ann"})
    table_client.create_entity({**key, "RowKey": "SS-SE-0000000001", "Version": 1, "Id": "a", "Type": "Opened"})
    table_client.create_entity({**key, "RowKey": "SS-SE-0000000002", "Version": 2, "Type": "Paid"})
    table_client.create_entity({**key, "RowKey": "SS-UID-a", "Version": 1})
    stream = Stream(table_client, "s")
    assert stream.version() == 2
    assert stream.append([Event({"Type": "Closed"}, "c")], expected=2) == 3
    assert list(stream.read()) == [
        Recorded(1, "a", {"Type": "Opened"}),
        Recorded(2, None, {"Type": "Paid"}),
        Recorded(3, "c", {"Type": "Closed"}),
    ]
    found = rows(table_client)
    assert (found["SS-HEAD"]["Version"], found["SS-HEAD"]["Owner"], found["SS-UID-c"]["Version"]) == (3, "Ann", 3)


def test_a_property_of_the_head_that_another_program_writes_meanwhile_stays(table_client: TableClient) -> None:
    def rename() -> None:
        table_client.update_entity({"PartitionKey": "s", "RowKey": "SS-HEAD", "Owner": "Bob"})

    stream = Stream(table_client, "s", runtime=Runtime(failpoints=FaultAt(3, Fault.RIVAL, rename)))
    assert [stream.append([Event({"Type": name})]) for name in ("Opened", "Paid")] == [1, 2]
    assert rows(table_client)["SS-HEAD"]["Owner"] == "Bob"
    assert list(audit(stream)) == []


def test_a_projection_is_of_the_same_transaction(table_client: TableClient) -> None:
    stream = Stream(table_client, "ann", Balance)

    def paid(cents: int) -> Callable[[Transaction[Balance], int], None]:
        return lambda transaction, version: transaction.upsert(Balance("ann", "main", cents))

    stream.append([Event({"Cents": 500})], project=paid(500))
    with pytest.raises(WrongVersion):
        stream.append([Event({"Cents": 900})], expected=0, project=paid(900))
    with pytest.raises(Conflict):
        stream.append([Event()], project=lambda transaction, _: transaction.insert(Balance("ann", "main", 1)))
    assert rows(table_client)["balance!main"]["cents"] == EntityProperty(500, EdmType.INT64)
    assert stream.version() == 1


def test_writers_at_one_time_leave_no_gap(table_client: TableClient) -> None:
    def write(number: int) -> list[int]:
        stream = Stream(table_client, "s")
        return [stream.append([Event({"N": number}, f"{number}-{turn}")], attempts=100) for turn in range(5)]

    with ThreadPoolExecutor(6) as pool:
        versions = [version for found in pool.map(write, range(6)) for version in found]
    assert sorted(versions) == list(range(1, 31))
    stream = Stream(table_client, "s")
    assert [each.version for each in stream.read()] == list(range(1, 31))
    assert [each.version for each in stream.read(28)] == [28, 29, 30]
    assert stream.find("3-0") in versions
    assert stream.find("absent") is None


def test_the_latest_events_are_newest_first(table_client: TableClient) -> None:
    stream = Stream(table_client, "s")
    assert stream.latest(3) == []
    for _ in range(5):
        stream.append([Event(), Event()])
    pages = [stream.latest(4), stream.latest(4, before=7), stream.latest(4, before=3), stream.latest(4, before=1)]
    assert [[each.version for each in page] for page in pages] == [[10, 9, 8, 7], [6, 5, 4, 3], [2, 1], []]
    assert [each.version for each in stream.latest(2, before=99)] == [10, 9]
    assert stream.latest(0) == []


def test_the_latest_events_are_read_in_pages_that_may_be_short() -> None:
    protocol = StreamProtocol("t", "s")
    simulation = ShortPages([0, 2])
    for _ in range(5):
        simulation.run(protocol.append([Event()]))
    assert [each.version for each in simulation.run(protocol.latest(4, None))] == [5, 4, 3, 2]
    before = simulation.pages
    assert [each.version for each in simulation.run(protocol.latest(1, 2))] == [1]
    assert simulation.pages - before <= 3, "no more is read than asked for"


def test_the_latest_events_of_a_damaged_stream(table_client: TableClient) -> None:
    stream = Stream(table_client, "s")
    for _ in range(5):
        stream.append([Event()])
    table_client.delete_entity("s", "SS-SE-0000000002")
    assert [each.version for each in stream.latest(3, before=4)] == [3, 1]


def test_4_mib_raise_before_sending(table_client: TableClient) -> None:
    stream = Stream(table_client, "s")
    large = {f"B{number}": bytes(65_536) for number in range(15)}
    assert stream.append([Event(large) for _ in range(3)]) == 3
    with pytest.raises(AppendTooLarge):
        stream.append([Event(large) for _ in range(4)])
    assert stream.version() == 3


async def test_an_asynchronous_stream(connection_string: str, table_client: TableClient) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        stream = AsyncStream(client, "s")
        assert await stream.version() == 0
        assert await stream.append([Event({"N": 1}, "a")], expected=0) == 1
        assert await stream.append([Event({"N": 1}, "a")], expected=0) == 1
        assert [each.properties async for each in stream.read()] == [{"N": 1}]
        assert [each.version for each in await stream.latest(2)] == [1]
        assert await stream.find("a") == 1


@pytest.mark.parametrize(
    ("row_key", "kinds"),
    [
        ("SS-HEAD", [checks.AFTER_HEAD, checks.AFTER_HEAD, checks.AFTER_HEAD]),
        ("SS-SE-0000000003", [checks.NO_LAST, checks.NO_EVENT]),
        ("SS-SE-0000000002", [checks.GAP, checks.NO_EVENT]),
        ("SS-UID-b", [checks.NO_ID]),
    ],
)
def test_damage_is_found(table_client: TableClient, row_key: str, kinds: list[str]) -> None:
    stream = Stream(table_client, "s")
    stream.append([Event(id=each) for each in "abc"])
    table_client.create_entity({"PartitionKey": "s", "RowKey": "unrelated"})
    assert list(audit(stream)) == []
    table_client.delete_entity("s", row_key)
    assert sorted(each.kind for each in audit(stream)) == sorted(kinds)
    list(audit(stream, repair=True))
    assert (row_key == "SS-UID-b") is (list(audit(stream)) == [])


@pytest.mark.parametrize(("event_id", "kind"), [(7, checks.UNREADABLE), (b"a", checks.UNREADABLE), ("a/b", FOREIGN)])
def test_an_id_that_no_row_can_have_is_found(table_client: TableClient, event_id: object, kind: str) -> None:
    stream = Stream(table_client, "s")
    stream.append([Event()])
    table_client.update_entity({"PartitionKey": "s", "RowKey": "SS-SE-0000000001", "Id": event_id})
    (found,) = (each for each in audit(stream, repair=True) if each.key.row_key.startswith("SS-SE-"))
    assert (found.kind, found.repaired) == (kind, False)


def test_a_row_without_a_version_is_found(table_client: TableClient) -> None:
    table_client.create_entity({"PartitionKey": "s", "RowKey": "SS-HEAD", "Version": "1"})
    assert [each.kind for each in audit(Stream(table_client, "s"))] == [checks.UNREADABLE]
    with pytest.raises(EntityFormatError):
        Stream(table_client, "s").version()


def test_names_of_the_stream_are_no_properties_of_events() -> None:
    with pytest.raises(ValueError, match="Version"):
        Event({"Version": 1})
