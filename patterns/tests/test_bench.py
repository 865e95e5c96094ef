"""The measurements run, and the campaign finds what is lost."""

import pytest
from azure.data.tables import TableClient

from lazulite_patterns.bench import campaign, compare

SMALL = campaign.Settings(rows=1500, partitions=20, faults=0.05, kills=1, seed=0)


def test_each_measurement_has_its_lines(connection_string: str) -> None:
    lines = [*compare.points(connection_string, 1, 2), *compare.loads(connection_string, 1, 200)]
    lines += compare.indexed(connection_string, 1, 2)
    assert [each.what.partition(":")[0] for each in lines[:4]] == ["point read", "insert", "load", "load"]
    assert [each.what.rpartition(": ")[2] for each in lines[4:]] == ["2 requests", "3 requests", "4 requests"]
    assert all(each.library.wall > 0 and each.other.cpu > 0 for each in lines)


def test_a_load_that_is_killed_loses_no_row(connection_string: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.run(connection_string, SMALL)
    assert "1500 rows" in capsys.readouterr().out


def test_a_lost_row_and_a_strange_one_are_found(table_client: TableClient) -> None:
    settings = SMALL._replace(rows=3)
    rows = list(campaign.source(settings))
    table_client.create_entity(rows[0])
    table_client.create_entity({**rows[1], "PartitionKey": "other"})
    assert campaign._compared(table_client, settings) == (1, 1)
