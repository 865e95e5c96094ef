"""Logs of several processes, of processes that are killed, and the program that reads them."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from azure.data.tables import TableAnalyticsLogging, TableServiceClient
from azure.storage.blob import BlobServiceClient

from lazulite.analytics.log_reader import LogLine
from tests.analytics.world import logged
from tests.server_process import ServerProcess, serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "slowest_requests.py"
ALL = TableAnalyticsLogging(version="1.0", read=True, write=True, delete=True)
SERVED = ("--services", "table,blob", "--table-port", "0", "--blob-port", "0", "--silent")


def use(server: ServerProcess, count: int = 20) -> set[str]:
    """Switch logs on, and upsert entities; return the ids of these requests."""
    ids: list[str] = []
    tables = TableServiceClient.from_connection_string(server.account.connection_string)
    tables.set_service_properties(analytics_logging=ALL)
    table = tables.create_table_if_not_exists("orders")
    for number in range(count):
        entity = {"PartitionKey": "p", "RowKey": str(number)}
        table.upsert_entity(entity, raw_response_hook=lambda found: ids.append(_id(found)))
    return set(ids)


def _id(found: Any) -> str:
    return str(found.http_response.headers["x-ms-request-id"])


def lines_of(server: ServerProcess) -> list[LogLine]:
    """Return all lines that are published."""
    return logged(BlobServiceClient.from_connection_string(server.account.connection_string), "table/")


def names_of(server: ServerProcess) -> list[str]:
    """Return the names of the blobs of logs."""
    blobs = BlobServiceClient.from_connection_string(server.account.connection_string)
    return [each.name for each in blobs.get_container_client("$logs").list_blobs(name_starts_with="table/")]


def test_workers_publish_under_names_of_their_own(tmp_path: Path) -> None:
    expected: set[str] = set()
    with serving(tmp_path / "data", *SERVED, "--workers", "3", "--analytics-seconds", "0.2") as server:
        for _ in range(5):  # Each client has a connection of its own, so several workers have some.
            expected |= use(server)
    with serving(tmp_path / "data", *SERVED) as again:
        found = Counter(line.request_id for line in lines_of(again) if line.operation == "InsertOrMergeEntity")
        names = names_of(again)
    assert set(found.values()) == {1}
    assert len(expected - set(found)) <= 3, "a worker may see the switch a moment later than the first request"
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("seconds", ["0.05", "60"])
def test_a_killed_process_leaves_whole_blobs_and_no_line_twice(tmp_path: Path, seconds: str) -> None:
    server = ServerProcess.start(tmp_path / "data", *SERVED, "--analytics-seconds", seconds)
    try:
        expected = use(server, 200)
    finally:
        server.kill()
        server.join()
    with serving(tmp_path / "data", *SERVED, "--analytics-seconds", "0.05") as again:
        before = Counter(line.request_id for line in lines_of(again)) if seconds == "0.05" else Counter[str]()
        more = use(again)
    with serving(tmp_path / "data", *SERVED) as last:
        found = Counter(line.request_id for line in lines_of(last) if line.operation == "InsertOrMergeEntity")
    assert set(found.values()) == {1}
    assert more <= set(found)
    assert set(found) <= expected | more
    assert set(before.values()) <= {1}


def test_the_example_prints_the_slowest_requests(tmp_path: Path) -> None:
    with serving(tmp_path / "data", *SERVED) as server:
        use(server)
    with serving(tmp_path / "data", *SERVED) as again:
        command = [sys.executable, "-W", "error", str(EXAMPLE), "--connection-string", again.account.connection_string]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    heading, *rows = done.stdout.splitlines()
    assert heading.split() == ["ms", "server", "time", "operation", "status", "key"]
    assert len(rows) == 10
    milliseconds = [int(row.split()[0]) for row in rows]
    assert milliseconds == sorted(milliseconds, reverse=True)
    assert any("InsertOrMergeEntity" in row and "/devstoreaccount1/orders/p/" in row for row in rows)


def test_the_example_tells_that_there_are_no_logs(tmp_path: Path) -> None:
    with serving(tmp_path / "data", *SERVED) as server:
        command = [sys.executable, str(EXAMPLE), "--connection-string", server.account.connection_string]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, "switch them on" in done.stderr) == (1, True)
