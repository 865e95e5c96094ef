"""Requests of queues and blobs are counted by their partitions: with templates, by plans, and rejected ones."""

import asyncio
import time
from itertools import islice

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueClient
from benchmarks.in_process import Side
from benchmarks.in_process_cases import CASES

from lazulite.app.commands import TRAFFIC, TrafficArguments
from lazulite.control.command import ControlError
from lazulite.partitions.live import Charge
from lazulite.protocol.message import Response
from lazulite.protocol.template import Answer, HeadValues, Miss, PendingAnswer
from lazulite.service.metered import MeteredOperation, RepeatedMeteredOperation
from lazulite.service.routing import CallOperation
from lazulite.testing import Storage
from lazulite.testing import server as storage_server
from lazulite.traffic.codec import decode
from lazulite.traffic.counters import BYTES_IN, BYTES_OUT, COUNTERS, READ, WRITTEN
from lazulite.traffic.meter import Meter, Resource, ResourceTraffic

ROUNDS = 6


async def metered(name: str) -> tuple[ResourceTraffic, int, int]:
    """Send the requests of a benchmark's case; return the traffic of its resource, the requests, and the hits."""
    meter = Meter(time.time)
    side, case = Side(meter), CASES[name]
    for request in case.fill():
        await side.send(case, [request])
    clients, requests = side.connect(case), case.workload.numbered(0)
    templates = clients[0].connection.server.templates
    assert templates is not None
    before = [list(meter.traffic(each).totals) for each in meter.resources()]  # type: ignore[union-attr]
    for _ in range(ROUNDS):
        _, replies = await side.send(case, list(islice(requests, case.workload.connections)), clients)
        for reply in replies:
            case.workload.check(*reply)
    (resource,) = meter.resources()
    found = meter.traffic(resource)
    assert found is not None
    for earlier in before:
        found.totals = [count - other for count, other in zip(found.totals, earlier, strict=True)]
    await side.engine.close()
    return found, ROUNDS * case.workload.connections, templates.hits


@pytest.mark.parametrize(
    ("name", "counter", "partitions"),
    [
        ("put of 1 KB, whole", WRITTEN, 1),
        ("put of a blob of 1 KB, whole", WRITTEN, 64 * ROUNDS),
        ("get of a blob of 1 KB, whole", READ, 0),
    ],
)
def test_answers_of_templates_are_counted(name: str, counter: int, partitions: int) -> None:
    found, requests, hits = asyncio.run(metered(name))
    assert hits > requests / 2
    assert found.totals[counter] == pytest.approx(requests)
    assert sum(found.totals[READ : WRITTEN + 1]) == pytest.approx(requests)
    size = found.totals[BYTES_OUT if counter == READ else BYTES_IN] / requests
    assert 1_000 < size < 2_100
    if partitions:
        assert len(found.hitters) >= min(partitions, 300)
    if partitions == 1:
        assert found.hitters.counts.keys() == {""}


def totals(storage: Storage, service: str, name: str) -> dict[str, float]:
    items = storage.control.stream(TRAFFIC, TrafficArguments(name, "devstoreaccount1", service))
    found = dict(zip(COUNTERS, decode(items).totals, strict=True))
    return {name: count for name, count in found.items() if count and not name.startswith("bytes")}


@pytest.mark.parametrize("targets", [None, "current"])
def test_messages_are_counted(targets: str | None) -> None:
    with storage_server(meter=True, targets=targets) as storage:
        queue = QueueClient.from_connection_string(storage.connection_string, "jobs")
        queue.create_queue()
        before = totals(storage, "queue", "jobs")
        for _ in range(20):
            queue.send_message("x" * 100)
        assert len(list(queue.receive_messages(max_messages=8))) == 8
        for message in queue.receive_messages(max_messages=3):
            queue.delete_message(message)
        assert len(queue.peek_messages(max_messages=5)) == 5
        with pytest.raises(HttpResponseError):
            queue.delete_message("0-0-0-0", "AgAAAAMAAAAAAAAA")
        after = totals(storage, "queue", "jobs")
        found = {name: count - before.get(name, 0) for name, count in after.items()}
        queue.close()
    assert found["written"] == 20 + 3
    assert found["read"] == 8 + 3 + 5
    assert found["requests"] >= 20 + 1 + 1 + 3 + 1 + 1


def test_blobs_are_counted_by_name_and_pages_by_rows() -> None:
    with storage_server(meter=True) as storage:
        service = BlobServiceClient.from_connection_string(storage.connection_string)
        container = service.create_container("photos")
        for number in range(10):
            container.upload_blob(f"2026/{number}.jpg", b"x" * 1_000)
        for _ in range(5):
            container.download_blob("2026/7.jpg").readall()
        with pytest.raises(ResourceNotFoundError):
            container.download_blob("2026/none.jpg")
        assert len(list(container.list_blobs(name_starts_with="2026/"))) == 10
        items = list(storage.control.stream(TRAFFIC, TrafficArguments("photos", "devstoreaccount1", "blob")))
        service.close()
    found = decode(items)
    counts = dict(zip(COUNTERS, found.totals, strict=True))
    assert (counts["written"], counts["read"], counts["scanned"]) == (10, 5, 10)
    assert counts["requests"] == 10 + 5 + 1 + 1
    assert counts["bytes_in"] == 10_000
    assert counts["bytes_out"] > 5_000
    ((name, count),) = found.hitters.top(1)
    assert name == "2026/7.jpg"
    assert count == pytest.approx(6, rel=0.01)
    assert "2026/none.jpg" in found.hitters.counts, "a rejected request is one of its partition"


def test_an_account_is_no_resource() -> None:
    with storage_server(meter=True) as storage:
        service = BlobServiceClient.from_connection_string(storage.connection_string)
        list(service.list_containers())
        service.create_container("photos")
        with pytest.raises(ControlError, match="has had no traffic"):
            totals(storage, "blob", "photos")
        service.close()


class Failing:
    """Answers nothing, and fails later."""

    waits = True

    def answer(self, _: HeadValues, __: bytes, later: PendingAnswer | None) -> Answer | Miss | None:
        assert later is not None
        later.fail(OSError("the disk is full"))
        return None


class Outcomes:
    """Gets the outcome of a request."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []

    def answer(self, answer: Answer) -> None:
        raise AssertionError(answer)

    def fail(self, failure: BaseException) -> None:
        self.failures.append(failure)


def test_a_write_that_fails_is_a_request_that_wrote_nothing() -> None:
    meter = Meter(lambda: 1_000_000.0)
    charge = Charge("a", "blob", "photos", "first.jpg")
    operation = MeteredOperation(CallOperation(Response(201)), meter, charge, reads=False, prefix="")
    later = Outcomes()
    repeated = RepeatedMeteredOperation(operation, Failing(), keyed=True)
    assert repeated.answer((b"b%20%C3%A9.jpg", b"x"), b"12345", later) is None
    assert [str(each) for each in later.failures] == ["the disk is full"]
    traffic = meter.traffic(Resource("a", "blob", "photos"))
    assert traffic is not None
    assert dict(zip(COUNTERS, traffic.totals, strict=True)) == {
        **dict.fromkeys(COUNTERS, 0),
        "bytes_in": 5,
        "requests": 1,
    }
    assert traffic.hitters.counts.keys() == {"b é.jpg"}, "the partition of the request, not of the plan's first one"


def test_a_miss_is_counted_by_the_usual_way_alone() -> None:
    class Missing(Failing):
        def answer(self, _: HeadValues, __: bytes, ___: PendingAnswer | None) -> Answer | Miss | None:
            return Miss.OPERATION

    meter = Meter(lambda: 1_000_000.0)
    operation = MeteredOperation(CallOperation(Response(201)), meter, Charge("a", "queue", "q", ""), False, "")
    repeated = RepeatedMeteredOperation(operation, Missing(), keyed=False)
    assert repeated.answer((), b"", Outcomes()) is Miss.OPERATION
    assert meter.resources() == []
