"""The measurements run, and the campaign finds what is lost."""

from collections.abc import Iterator

import pytest
from azure.data.tables import TableClient
from azure.storage.blob import ContainerClient

from lazulite_patterns.indexes.check import NO_ENTRY, OTHER_COPY
from lazulite_patterns.indexes.list_blobs import name
from lazulite_patterns_simulation.bench import campaign, compare, writers
from lazulite_patterns_simulation.bench.turns import Seconds, Turns

SMALL = campaign.Settings(rows=1500, partitions=20, faults=0.05, kills=1, seed=0)


def test_each_measurement_has_its_lines(connection_string: str) -> None:
    lines = [*compare.points(connection_string, 1, 2), *compare.loads(connection_string, 1, 200)]
    lines += compare.indexed(connection_string, 1, 2)
    assert [each.what.partition(":")[0] for each in lines[:4]] == ["point read", "insert", "load", "load"]
    assert [each.what.rpartition(": ")[2] for each in lines[4:]] == ["2 requests", "3 requests", "4 requests"]
    assert all(each.library.median.wall > 0 and each.library.ratio(each.other).cpu > 0 for each in lines)


def test_a_ratio_is_of_turns_that_are_next_to_each_other() -> None:
    other = Turns(tuple(Seconds(wall, 1) for wall in (1, 9, 4, 100)))
    own = Turns(tuple(Seconds(1.5 * each.wall, 1) for each in other.turns))
    assert own.ratio(other) == (1.5, 1)
    assert own.for_each(10).ratio(other.for_each(10)).wall == pytest.approx(1.5)


def test_a_load_that_is_killed_loses_no_row(connection_string: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.run(connection_string, SMALL)
    assert "1500 rows" in capsys.readouterr().out


def test_a_lost_row_and_a_strange_one_are_found(table_client: TableClient) -> None:
    settings = SMALL._replace(rows=3)
    rows = list(campaign.source(settings))
    table_client.create_entity(rows[0])
    table_client.create_entity({**rows[1], "PartitionKey": "other"})
    assert campaign._compared(table_client, settings) == (1, 1)


def test_writers_that_are_killed_leave_each_entity_to_be_found(
    connection_string: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = writers.Settings(writers=2, people=2, kills=2, interval_seconds=2, seed=0)
    assert writers.run(connection_string, settings), capsys.readouterr().out
    assert "2 writers, 2 killed" in capsys.readouterr().out


@pytest.fixture
def squads(connection_string: str) -> Iterator[ContainerClient]:
    """Yield a client of the container that the class of the writers names."""
    with ContainerClient.from_connection_string(connection_string, writers.CONTAINER) as client:
        client.create_container()
        yield client
        client.delete_container()


@pytest.mark.parametrize("beginning", ["_Index!city", "_Index!teams", "_Index!squads"])
def test_a_lost_entry_is_found(table_client: TableClient, squads: ContainerClient, beginning: str) -> None:
    rows = writers.staff(writers.Clients(table_client, squads))
    for each in writers.everyone(2):
        rows.insert(each)
    assert writers.look(rows, 2).wrong == {}
    assert writers.look(rows, 2).looked == 2
    for row in list(table_client.list_entities()):
        if row["PartitionKey"].startswith(beginning):
            table_client.delete_entity(row)
    for blob in list(squads.list_blobs(name_starts_with=name(table_client.table_name, beginning))):
        squads.delete_blob(blob.name)
    assert writers.look(rows, 2).wrong == {NO_ENTRY: 2}, "the audit repairs it before the look"


def test_a_wrong_copy_is_found(table_client: TableClient, squads: ContainerClient) -> None:
    rows = writers.staff(writers.Clients(table_client, squads))
    rows.insert(writers.everyone(1)[0])
    table_client.update_entity({"PartitionKey": "IT", "RowKey": "0000", "salary": 3})
    assert set(writers.look(rows, 1).wrong) >= {OTHER_COPY}
