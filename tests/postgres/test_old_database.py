"""Processes of today's version serve a database that an earlier one made, and change none of its rows."""

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.queue import QueueServiceClient

from tests.golden import database_statements
from tests.server_process import running

from .server import Coordinator, Postgres

ENTITIES = 10
MESSAGES = 5
_ROWS = "SELECT space, partition_key, row_key, value FROM lazulite.rows WHERE space > 1"
"""Without the rows that count spaces."""
_FORMAT = "SELECT value FROM lazulite.store WHERE name = 'format'"


def test_a_database_of_an_earlier_version_is_served_and_keeps_its_rows(postgres: Postgres) -> None:
    if isinstance(postgres, Coordinator):
        pytest.skip("the statements make tables of one server")
    with postgres.database() as dsn:
        name = dsn.rpartition("/")[2].partition("?")[0]
        postgres.execute("SELECT 1", database=name, after=database_statements())
        before = {tuple(row) for row in postgres.execute(_ROWS, database=name)}
        flags = ("--engine", dsn, "--silent", "--services", "table,queue")
        with running(*flags, lines=3) as one, running(*flags, lines=3) as other:
            strings = [server.lines[1].strip() for server in (one, other)]
            for number, string in enumerate(strings):
                with TableServiceClient.from_connection_string(string, retry_total=0) as tables:
                    orders = tables.get_table_client("Orders")
                    orders.create_entity({"PartitionKey": "q", "RowKey": str(number), "Number": number})
                    found = [int(each["Number"]) for each in orders.query_entities("PartitionKey eq 'p'")]
                    assert found == list(range(ENTITIES))
            with (
                QueueServiceClient.from_connection_string(strings[0], retry_total=0) as queues,
                queues.create_queue("jobs") as jobs,
            ):
                for number in range(MESSAGES):
                    jobs.send_message(str(number))
                assert sorted(int(each.content) for each in jobs.receive_messages()) == list(range(MESSAGES))
            assert one.stop() == other.stop() == (0, "")
        assert before <= {tuple(row) for row in postgres.execute(_ROWS, database=name)}
        assert [tuple(row) for row in postgres.execute(_FORMAT, database=name)] == [("1",)]
