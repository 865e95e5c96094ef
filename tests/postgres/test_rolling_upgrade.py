"""Processes of the last version without queues are replaced, one after the other, on one database by today's."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from itertools import count

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableClient, TableServiceClient
from azure.storage.queue import QueueServiceClient

from tests.old_version import old_server
from tests.server_process import ServerProcess, running

from .server import Postgres, until

MESSAGES = 40


@pytest.fixture
def flags(postgres: Postgres) -> Iterator[tuple[str, ...]]:
    with postgres.database() as dsn:
        yield ("--engine", dsn)


class Fleet:
    """Two processes on a database, old or new."""

    def __init__(self, flags: tuple[str, ...]) -> None:
        self._flags = flags
        self._numbers = count()
        self._stacks: list[ExitStack] = []
        self.servers: list[ServerProcess] = []

    def start_old(self) -> None:
        """Add a process of the old version."""
        self._start(old_server(*self._flags))

    def replace_oldest(self, *, by_old: bool = False) -> None:
        """Stop the first process, and add one of today's version or of the old one."""
        assert self.servers.pop(0).stop() == (0, "")
        self._stacks.pop(0).close()
        if by_old:
            self.start_old()
        else:
            self._start(running(*self._flags, "--silent", "--services", "table,queue", lines=3))

    def _start(self, process: AbstractContextManager[ServerProcess]) -> None:
        stack = ExitStack()
        self.servers.append(stack.enter_context(process))
        self._stacks.append(stack)

    def stop(self) -> None:
        """Stop all processes."""
        for server in self.servers:
            assert server.stop() == (0, "")
        self.close()

    def close(self) -> None:
        """Kill what still runs."""
        while self._stacks:
            self._stacks.pop().close()

    def work(self) -> None:
        """Have each process work on what the other one has made."""
        for maker, other in (self.servers, self.servers[::-1]):
            name = f"Orders{next(self._numbers)}"
            with tables(maker) as making, tables(other) as using:
                table, mirror = making.create_table(name), using.get_table_client(name)
                until(lambda mirror=mirror: _exists(mirror), "the table at the other process")  # type: ignore[misc]
                mirror.create_entity({"PartitionKey": "p", "RowKey": "1", "Number": 1})
                entity = table.get_entity("p", "1")
                table.update_entity({**entity, "Number": 2})
                with pytest.raises(HttpResponseError, match="UpdateConditionNotSatisfied"):
                    mirror.update_entity(
                        {**entity, "Number": 3},
                        etag=entity.metadata["etag"],
                        match_condition=MatchConditions.IfNotModified,
                    )
                mirror.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": str(row)}) for row in range(9)])
                assert len(list(table.list_entities())) == 9
                using.delete_table(name)
                until(lambda table=table: not _exists(table), "the deletion at the other process")  # type: ignore[misc]
                kept = making.create_table(f"Kept{name}")
                kept.create_entity({"PartitionKey": "p", "RowKey": "1"})

    def kept(self) -> list[list[str]]:
        """Return the tables that each process knows."""
        found = []
        for server in self.servers:
            with tables(server) as service:
                found.append([table.name for table in service.list_tables()])
        return found


def tables(server: ServerProcess) -> TableServiceClient:
    return TableServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0)


def queues(server: ServerProcess) -> QueueServiceClient:
    return QueueServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0)


def _exists(table: TableClient) -> bool:
    try:
        table.get_entity("p", "none")
    except ResourceNotFoundError as error:
        return "TableNotFound" not in str(error)
    return True


def test_tables_work_while_processes_are_replaced_and_queues_as_soon_as_one_is_new(flags: tuple[str, ...]) -> None:
    fleet = Fleet(flags)
    try:
        fleet.start_old()
        fleet.start_old()
        fleet.work()
        fleet.replace_oldest()
        with queues(fleet.servers[1]) as service, service.create_queue("jobs") as jobs:
            for number in range(MESSAGES):
                jobs.send_message(str(number))
            dropped = service.create_queue("dropped")
            dropped.send_message("x")
            dropped.delete_queue()
            dropped.close()
        fleet.work()
        fleet.replace_oldest()
        fleet.work()
        one, other = fleet.kept()
        assert one == other == sorted(f"KeptOrders{number}" for number in range(6))
        got: list[int] = []
        clients: list[Callable[[], list[int]]] = []
        with queues(fleet.servers[0]) as here, queues(fleet.servers[1]) as there:
            for service in (here, there):
                jobs = service.get_queue_client("jobs")
                clients.append(
                    lambda jobs=jobs: [int(each.content) for each in jobs.receive_messages(max_messages=1)]  # type: ignore[misc]
                )
            while found := clients[0]() + clients[1]():
                got += found
        assert sorted(got) == list(range(MESSAGES)), "each message once"
        fleet.stop()
    finally:
        fleet.close()


def test_an_upgrade_is_undone_and_done_again_beside_queues_with_messages(flags: tuple[str, ...]) -> None:
    fleet = Fleet(flags)
    try:
        fleet.start_old()
        fleet.start_old()
        fleet.replace_oldest()
        fleet.replace_oldest()
        with queues(fleet.servers[0]) as service, service.create_queue("jobs", metadata={"a": "1"}) as jobs:
            for number in range(MESSAGES):
                jobs.send_message(str(number))
            held = jobs.receive_message(visibility_timeout=600)
            assert held is not None
        fleet.work()
        for _ in range(2):
            fleet.replace_oldest(by_old=True)
            fleet.work()
        for _ in range(2):
            fleet.replace_oldest()
            fleet.work()
        assert len(fleet.kept()[0]) == 10, "all tables of all versions"
        with queues(fleet.servers[1]) as service:
            assert [queue.name for queue in service.list_queues()] == ["jobs"]
            jobs = service.get_queue_client("jobs")
            properties = jobs.get_queue_properties()
            assert (properties.approximate_message_count, properties.metadata) == (MESSAGES, {"a": "1"})
            got = [int(each.content) for each in jobs.receive_messages(messages_per_page=32)]
            assert sorted([*got, int(held.content)]) == list(range(MESSAGES))
            jobs.delete_message(held)
            assert jobs.get_queue_properties().approximate_message_count == MESSAGES - 1
        fleet.stop()
    finally:
        fleet.close()
