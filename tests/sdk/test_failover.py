"""Two processes on a database whose primary is killed under load: clients are asked to wait, and nothing is lost."""

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.data.tables import TableServiceClient
from tests.postgres.engine_under_test import DATABASE
from tests.postgres.server import PostgresServer, until
from tests.server_process import Account, ServerProcess, serving

TABLE = "Failover"
WRITERS = 3
"""At each process."""


class Writer:
    """Inserts one entity after the other, whatever becomes of the last one."""

    def __init__(self, account: Account, partition: str) -> None:
        self._account = account
        self.partition = partition
        self.acknowledged: list[str] = []
        self.rejected: list[int | None] = []
        """Statuses."""
        self.over = False

    def run(self) -> None:
        with TableServiceClient.from_connection_string(
            self._account.connection_string, retry_total=0, transport=RequestsTransport()
        ) as service:
            table = service.get_table_client(TABLE)
            for number in itertools.count():
                if self.over:
                    return
                row = f"{number:06}"
                try:
                    table.create_entity({"PartitionKey": self.partition, "RowKey": row})
                except HttpResponseError as error:
                    self.rejected.append(error.status_code)
                else:
                    self.acknowledged.append(row)

    def gets_on(self, entities: int = 10) -> None:
        """Wait until so many more were acknowledged."""
        goal = len(self.acknowledged) + entities
        until(lambda: len(self.acknowledged) >= goal, "entities to be acknowledged")


def health(server: ServerProcess) -> int:
    connection = HTTPConnection(server.account.host, timeout=60)
    connection.request("GET", "/health")
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.fixture(name="pair")
def _pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    with PostgresServer.make() as primary, primary.make_standby() as standby:
        yield primary, standby


def test_failover_loses_no_acknowledged_write(pair: tuple[PostgresServer, PostgresServer], tmp_path: Path) -> None:
    """`-rP` shows how long it is."""
    primary, standby = pair
    with ExitStack() as stack:
        database = {DATABASE: primary.dsn(None, standby)}
        servers = [stack.enter_context(serving(tmp_path / name, **database)) for name in ("one", "other")]
        with TableServiceClient.from_connection_string(servers[0].account.connection_string) as service:
            service.create_table(TABLE)
        writers = [Writer(server.account, f"{at}-{n}") for at, server in enumerate(servers) for n in range(WRITERS)]
        pool = stack.enter_context(ThreadPoolExecutor(len(writers)))
        runs = [pool.submit(writer.run) for writer in writers]
        try:
            for writer in writers:
                writer.gets_on()
            began = time.monotonic()
            primary.kill()
            for writer in writers:
                until(lambda writer=writer: writer.rejected, "a rejection")  # type: ignore[misc]  # of a default
            until(lambda: [health(server) for server in servers] == [503, 503], "both to be unwell")
            standby.promote()
            promoted = time.monotonic()
            for writer in writers:
                writer.gets_on(1)
            over = time.monotonic()
            print(f"everybody writes {over - began:.2f} s after the end, {over - promoted:.2f} s after the promotion")
            until(lambda: [health(server) for server in servers] == [200, 200], "both to be well")
        finally:
            for writer in writers:
                writer.over = True
        for run in runs:
            run.result()
        assert {status for writer in writers for status in writer.rejected} == {503}
        with TableServiceClient.from_connection_string(servers[1].account.connection_string) as service:
            kept = {(each["PartitionKey"], each["RowKey"]) for each in service.get_table_client(TABLE).list_entities()}
        assert {(writer.partition, row) for writer in writers for row in writer.acknowledged} <= kept
