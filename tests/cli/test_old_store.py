"""A location of the last version without queues: today's version opens it, serves queues too, and may be undone."""

from pathlib import Path

from azure.data.tables import TableServiceClient
from azure.storage.queue import QueueServiceClient

from tests.old_version import old_server
from tests.server_process import running

from .test_serve import lazulite

ENTITIES = 50


def entities(connection_string: str) -> list[int]:
    with TableServiceClient.from_connection_string(connection_string.strip(), retry_total=0) as service:
        found = service.get_table_client("Orders").list_entities()
        return [int(entity["Number"]) for entity in found]


def add(connection_string: str, numbers: range) -> None:
    with TableServiceClient.from_connection_string(connection_string.strip(), retry_total=0) as service:
        table = service.create_table_if_not_exists("Orders")
        for number in numbers:
            table.create_entity({"PartitionKey": "p", "RowKey": f"{number:04}", "Number": number})


def test_a_location_without_queues_opens_as_before_and_gets_queues(tmp_path: Path) -> None:
    location = ("--location", str(tmp_path / "data"))
    with old_server(*location) as server:
        assert server.lines[1].count("Endpoint=") == 1, "it is an old one"
        add(server.lines[1], range(ENTITIES))
        assert server.stop() == (0, "")
    with running(*location, "--silent", "--services", "table,queue") as server:
        assert entities(server.lines[1]) == list(range(ENTITIES))
        add(server.lines[1], range(ENTITIES, 2 * ENTITIES))
        with (
            QueueServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0) as service,
            service.create_queue("jobs") as jobs,
        ):
            for number in range(ENTITIES):
                jobs.send_message(str(number))
        assert server.stop() == (0, "")
    checked = lazulite("check", *location)
    assert checked.returncode == 0, checked.stderr
    assert "queues     1" in checked.stdout
    with old_server(*location) as server:
        assert entities(server.lines[1]) == list(range(2 * ENTITIES)), "the upgrade can be undone"
        with TableServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0) as tables:
            tables.create_table("Others")
            tables.delete_table("Orders")
        assert server.stop() == (0, "")
    with (
        running(*location, "--silent", "--services", "table,queue") as server,
        QueueServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0) as service,
        service.get_queue_client("jobs") as jobs,
    ):
        got = [int(message.content) for page in range(2) for message in jobs.receive_messages(max_messages=32)]
        assert sorted(got) == list(range(ENTITIES)), "the messages are untouched"
        assert server.stop() == (0, "")
