"""`lazulite.testing.server(targets=...)`: the gate over HTTP, for all services, in a clock that the test moves."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

import lazulite.testing
from lazulite.app.commands import (
    PARTITIONS,
    SET_TARGETS,
    TRAFFIC,
    PartitionsArguments,
    SetTargetsArguments,
    TrafficArguments,
)
from lazulite.partitions.targets import TargetsError
from lazulite.traffic.codec import decode
from lazulite.traffic.counters import COUNTERS

SMALL = """
partition = 10
queue = 5
blob = 4
blob_bytes = 1000
account = 100
timeout_share = 0
"""
MOVING = """
partition = 1000
server_cap = 100
timeout_share = 0
[balancing]
decide_after_seconds = 15
move_seconds = 10
"""
REFUSED = COUNTERS.index("refused")
TIMED_OUT = "timeout_share = 1\n"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture(name="targets")
def _targets(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return str(path)


def outcomes(count: int, ask: Callable[[], Any]) -> list[int]:
    """Return the statuses of requests, 0 for a success."""
    found = []
    for _ in range(count):
        try:
            ask()
        except HttpResponseError as error:
            found.append(error.status_code or -1)
        else:
            found.append(0)
    return found


def traffic(storage: lazulite.testing.Storage, table: str) -> list[float]:
    """Return the counts of the meter."""
    return decode(list(storage.control.stream(TRAFFIC, TrafficArguments(table)))).totals


def test_tables(targets: str) -> None:
    clock = Clock()
    with (
        lazulite.testing.server(targets=targets, clock=clock) as storage,
        TableServiceClient.from_connection_string(storage.connection_string, retry_total=0) as service,
    ):
        table = service.create_table("Orders")
        entity = {"PartitionKey": "p", "RowKey": "r"}
        assert outcomes(12, lambda: table.upsert_entity(entity)) == [0] * 10 + [503] * 2
        headers: dict[str, str] = {}
        with pytest.raises(HttpResponseError) as refused:
            table.get_entity(
                "p", "r", raw_response_hook=lambda response: headers.update(response.http_response.headers)
            )
        assert refused.value.message.startswith(
            "The server is currently unable to receive requests. Please retry your request."
        )
        assert headers["Server-Timing"] == 'gate;desc="partition"'
        clock.pass_by(1)
        assert table.get_entity("p", "r") == entity
        assert traffic(storage, "Orders")[REFUSED] == 3
        clock.pass_by(1)
        assert outcomes(12, lambda: list(table.query_entities("PartitionKey eq 'p'"))) == [0] * 10 + [503] * 2


def test_queues_by_messages(targets: str) -> None:
    clock = Clock()
    with (
        lazulite.testing.server(targets=targets, clock=clock) as storage,
        QueueServiceClient.from_connection_string(storage.connection_string, retry_total=0) as service,
    ):
        queue, other = service.create_queue("orders"), service.create_queue("others")
        clock.pass_by(1)
        assert outcomes(7, lambda: queue.send_message("x")) == [0] * 5 + [503] * 2
        assert outcomes(1, lambda: other.send_message("x")) == [0]
        clock.pass_by(1)
        assert len(queue.peek_messages(5)) == 5
        assert outcomes(2, lambda: queue.send_message("x")) == [503] * 2
        clock.pass_by(1)
        assert outcomes(6, queue.get_queue_properties) == [0] * 5 + [503]
        assert len(list(service.list_queues())) == 2


def test_blobs_by_requests_and_bytes(targets: str) -> None:
    clock = Clock()
    with (
        lazulite.testing.server(targets=targets, clock=clock) as storage,
        BlobServiceClient.from_connection_string(storage.connection_string, retry_total=0) as service,
    ):
        container = service.create_container("orders")
        blob, other = container.get_blob_client("a.txt"), container.get_blob_client("b.txt")
        assert outcomes(1, lambda: blob.upload_blob(b"x", overwrite=True)) == [0]
        clock.pass_by(1)
        assert outcomes(6, blob.get_blob_properties) == [0] * 4 + [503] * 2
        assert outcomes(1, lambda: other.upload_blob(b"x")) == [0]
        clock.pass_by(1)
        assert outcomes(2, lambda: blob.upload_blob(bytes(900), overwrite=True)) == [0, 503]
        clock.pass_by(1)
        assert outcomes(1, lambda: blob.download_blob().readall()) == [0]
        assert outcomes(1, lambda: blob.download_blob().readall()) == [0]
        assert outcomes(1, lambda: blob.download_blob().readall()) == [503]
        assert outcomes(1, lambda: list(container.list_blobs())) == [0]


def test_plans_that_were_cached_rest_while_there_are_targets() -> None:
    clock, small = Clock(), SetTargetsArguments("small", SMALL)
    with (
        lazulite.testing.server(clock=clock) as storage,
        BlobServiceClient.from_connection_string(storage.connection_string, retry_total=0) as service,
    ):
        blob = service.create_container("orders").get_blob_client("a.txt")
        blob.upload_blob(b"x")

        def read() -> bytes:
            return blob.download_blob().readall()

        assert outcomes(6, read) == [0] * 6
        storage.control.ask(SET_TARGETS, small)
        assert outcomes(6, read) == [0] * 4 + [503] * 2
        storage.control.ask(SET_TARGETS, SetTargetsArguments("off"))
        assert outcomes(6, read) == [0] * 6


def test_bytes_that_are_not_sent_are_not_charged(tmp_path: Path) -> None:
    path = tmp_path / "narrow.toml"
    path.write_text("egress_bytes = 1000000\n", encoding="utf-8")
    clock = Clock()
    with (
        lazulite.testing.server(targets=str(path), clock=clock) as storage,
        BlobServiceClient.from_connection_string(storage.connection_string, retry_total=0) as service,
    ):
        disk = service.create_container("disks").get_blob_client("disk")
        disk.create_page_blob(1 << 40)
        assert outcomes(3, disk.get_blob_properties) == [0] * 3
        assert outcomes(2, lambda: disk.download_blob(0, 1 << 20).readall()) == [0, 503]
        clock.pass_by(0.25)
        assert outcomes(1, disk.get_blob_properties) == [0]


def test_a_time_out_of_a_write_may_have_been_made(tmp_path: Path) -> None:
    path = tmp_path / "timed_out.toml"
    path.write_text(SMALL.replace("timeout_share = 0\n", TIMED_OUT), encoding="utf-8")
    clock = Clock()
    with (
        lazulite.testing.server(targets=str(path), clock=clock) as storage,
        QueueServiceClient.from_connection_string(storage.connection_string, retry_total=0) as service,
    ):
        queue = service.create_queue("orders")
        assert outcomes(44, lambda: queue.send_message("x")) == [0] * 4 + [500] * 40
        clock.pass_by(1)
        assert 4 + 10 <= (queue.get_queue_properties().approximate_message_count or 0) <= 4 + 30
    with pytest.raises(TargetsError), lazulite.testing.server(targets="none"):
        raise AssertionError("there are no such targets")


def test_a_moving_range_is_refused_for_its_time_and_no_other_is_touched(tmp_path: Path) -> None:
    path, clock = tmp_path / "moving.toml", Clock()
    path.write_text(MOVING, encoding="utf-8")
    with (
        lazulite.testing.server(targets=str(path), clock=clock) as storage,
        TableServiceClient.from_connection_string(storage.connection_string, retry_total=0) as service,
    ):
        table = service.create_table("Orders")

        def write(partition: str) -> int:
            rows = [{"PartitionKey": partition, "RowKey": str(row)} for row in range(40)]
            return outcomes(1, lambda: table.submit_transaction([("upsert", row) for row in rows]))[0]

        def ranges() -> list[Any]:
            return list(storage.control.stream(PARTITIONS, PartitionsArguments("Orders")))[1:]

        for number in range(90):
            clock.pass_by(0.5)
            if len(ranges()) == 2:
                break
            assert write("abcdefgh"[number % 8]) == 0
        lower, upper = ranges()
        assert (lower["refused"], upper["refused"], lower["moving_seconds"]) == (0, 0, 0)
        assert 9 <= upper["moving_seconds"] <= 10
        assert "a" < upper["start"] <= "h"
        moving = [write("h"), write("h")]
        assert [write("a"), write("a")] == [0, 0]
        clock.pass_by(upper["moving_seconds"] - 0.01)
        moving.append(write("h"))
        assert moving == [503] * 3
        clock.pass_by(0.02)
        assert [write("h"), write("a")] == [0, 0]
        assert [(each["refused"], each["delayed"]) for each in ranges()] == [(0, 0), (3, 0)]


def test_a_moved_clock_ends_all_waits() -> None:
    """What would wait for a second in a queue of the partition says so, and does not wait."""
    clock = Clock()
    with (
        lazulite.testing.server(targets="study-2010", clock=clock) as storage,
        TableServiceClient.from_connection_string(storage.connection_string, retry_total=0) as service,
    ):
        table, timings = service.create_table("Orders"), list[str]()
        rows = [{"PartitionKey": "p", "RowKey": str(number)} for number in range(100)]

        def note(response: Any) -> None:
            timings.append(response.http_response.headers["Server-Timing"])

        for _ in range(20):
            table.submit_transaction([("upsert", row) for row in rows], raw_response_hook=note)
        name, _, duration = timings[-1].partition(";dur=")
        assert name == 'gate;desc="partition"'
        assert float(duration) == pytest.approx(20 * (1 + 99 * 0.39), abs=0.01)
