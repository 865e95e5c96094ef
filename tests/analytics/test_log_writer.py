"""Lines on their way to blobs: grouped, bounded, dropped and counted where they cannot be written."""

import asyncio
from contextlib import suppress

import pytest

from lazulite.analytics.collector import Collector
from lazulite.analytics.exchange_buffer import AnalyticsCounts, ExchangeBuffer
from lazulite.analytics.log_container import TICKS_PER_HOUR, LogContainer
from lazulite.analytics.log_writer import UNVERIFIED_BYTES_MAX, LineQuota, LogWriter
from lazulite.analytics.requests import LoggedRequest, RequestReader
from lazulite.app.analytics import analytics
from lazulite.app.stores import open_store
from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.message import Response
from lazulite.protocol.metadata import Metadata
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.service.definition import ServiceDependencies
from lazulite.service.properties import Logging, ServiceProperties
from lazulite.settings.config import Settings
from tests.analytics.samples import ALL, NOW, answered, read, request_of


class Blobs(LogContainer):
    """Keeps what is published; fails while it is broken."""

    def __init__(self) -> None:
        self.put_blobs: list[tuple[str, str, bytes, dict[str, str]]] = []
        self.is_broken = False
        self.has_some = asyncio.Event()

    async def put(self, account: str, folder: str, content: bytes, metadata: Metadata) -> str:
        """See `LogContainer`."""
        await asyncio.sleep(0)
        if self.is_broken:
            raise EngineUnavailableError("disk full")
        self.has_some.set()
        self.put_blobs.append((account, folder, content, dict(metadata)))
        return folder


def request(operation: str = "QueryEntity", service: str = "table", ended: int = NOW) -> LoggedRequest:
    """Return a request that ended at a time."""
    (found,) = read(answered(request_of(service, operation), Response(200)))
    return found._replace(ended=ended, started=ended - 120_000)


def new_writer(
    bytes_max: int = 10**6, blob_bytes_max: int = 10**6
) -> tuple[LogWriter, Blobs, AnalyticsCounts, list[str]]:
    """Return a writer, and what it writes to."""
    blobs, counts, reported = Blobs(), AnalyticsCounts(), list[str]()
    return LogWriter(blobs, counts, reported.append, bytes_max, blob_bytes_max), blobs, counts, reported


async def test_a_blob_has_one_service_and_hour_and_its_metadata_tells_what_is_in_it() -> None:
    writer, blobs, counts, _ = new_writer()
    later = NOW + TICKS_PER_HOUR
    writer.take([request(), request("InsertEntity"), request("PutMessage", "queue"), request(ended=later)])
    await writer.publish()
    folders = [(folder, content.count(b"\n")) for _, folder, content, _ in blobs.put_blobs]
    assert folders == [("table/2028/10/19/0000/", 2), ("queue/2028/10/19/0000/", 1), ("table/2028/10/19/0100/", 1)]
    facts = blobs.put_blobs[0][3]
    assert (facts["LogType"], facts["LogVersion"]) == ("read,write", "1.0")
    assert facts["StartTime"] == facts["EndTime"] == "2028-10-18T23:59:59Z"
    assert (counts.lines, counts.blobs) == (4, 3)
    await writer.publish()
    assert counts.blobs == 3


async def test_each_switch_is_for_its_class() -> None:
    writer, blobs, _, _ = new_writer()
    for logging in (Logging(read=True), Logging(write=True), Logging(delete=True)):
        properties = ServiceProperties(logging=logging)
        names = ("QueryEntity", "InsertEntity", "DeleteEntity")
        writer.take([request(name)._replace(properties=properties) for name in names])
        await writer.publish()
    assert [facts["LogType"] for *_, facts in blobs.put_blobs] == ["read", "write", "delete"]


async def test_a_broken_store_costs_lines_that_are_counted_and_reported_once() -> None:
    writer, blobs, counts, reported = new_writer(bytes_max=700)
    blobs.is_broken = True
    for _ in range(3):
        writer.take([request()])
        await writer.publish()
    assert (counts.lines, counts.dropped_lines, len(reported)) == (0, 3, 1)
    blobs.is_broken = False
    writer.take([request()])  # There is room again.
    await writer.publish()
    assert (counts.lines, counts.dropped_lines) == (1, 3)


async def test_lines_without_room_are_dropped_and_counted() -> None:
    writer, _, counts, _ = new_writer(bytes_max=1500)
    writer.take([request() for _ in range(10)])
    await writer.publish()
    assert 0 < counts.lines < 10
    assert counts.lines + counts.dropped_lines == 10


def refused(*, is_verified: bool = False) -> LoggedRequest:
    (found,) = read(answered(request_of("table", "QueryEntity"), Response(403)))
    return found._replace(is_verified=is_verified)


async def test_strangers_have_a_share_of_the_lines_in_each_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    writer, _, counts, _ = new_writer()
    monkeypatch.setattr("lazulite.analytics.log_writer.UNVERIFIED_BYTES_MAX", 1500)
    writer.take([refused()] * 1000)
    await writer.publish()
    share = counts.lines
    assert 2 <= share <= 10
    assert counts.refused_lines == 1000 - share
    writer.take([request(), refused(is_verified=True), request("PutMessage", "queue")])
    await writer.publish()
    assert (counts.lines, counts.refused_lines) == (share + 3, 1000 - share)
    late = refused()._replace(ended=NOW + 60 * TICKS_PER_SECOND)
    writer.take([late] * 1000)
    await writer.publish()
    assert (counts.lines, counts.refused_lines, counts.dropped_lines) == (2 * share + 3, 2000 - 2 * share, 0)


def test_an_old_minute_gives_no_new_share() -> None:
    lines = LineQuota()
    assert lines.take("a", "table", 2, UNVERIFIED_BYTES_MAX)
    assert not lines.take("a", "table", 1, 1)
    assert not lines.take("a", "table", 2, 1)
    assert lines.take("a", "queue", 1, 1)
    assert lines.take("a", "table", 3, 1)


async def test_bytes_are_counted_and_not_characters() -> None:
    writer, blobs, counts, _ = new_writer(bytes_max=1500)
    keys = ["/acct/orders/" + "\N{HIRAGANA LETTER A}" * 200] * 3
    writer.take([request()._replace(key=key) for key in keys])
    await writer.publish()
    assert (counts.lines, counts.dropped_lines) == (1, 2)
    assert len(blobs.put_blobs[0][2]) <= 1500


async def test_a_full_blob_does_not_wait_for_its_time() -> None:
    writer, blobs, counts, _ = new_writer(blob_bytes_max=1000)
    running = asyncio.create_task(writer.run(10_000))
    writer.take([request() for _ in range(5)])
    writer.take([request("PutMessage", "queue")])
    await blobs.has_some.wait()
    assert not running.done()
    writer.stop()
    await running
    assert counts.lines == 6
    assert [(folder[:5], content.count(b"\n")) for _, folder, content, _ in blobs.put_blobs] == [
        ("table", 5),
        ("queue", 1),
    ]


async def test_the_collector_hands_on_in_order_and_drains_at_the_end() -> None:
    taken: list[str] = []
    has_all = asyncio.Event()

    class Consumer:
        def take(self, requests: object) -> None:
            assert isinstance(requests, list)
            taken.extend(each.id for each in requests)
            if len(taken) == 100:
                has_all.set()

    buffer = ExchangeBuffer([], lambda: NOW)
    buffer.note("table", "acct", ALL)
    ticks = iter(range(10**6))
    collector = Collector(buffer, RequestReader({}, buffer.wanted), [Consumer()], lambda: float(next(ticks)))
    seen: set[int] = set()

    async def watch() -> None:
        while not has_all.is_set():
            seen.add(len(taken))
            await asyncio.sleep(0)

    running, watching = asyncio.create_task(collector.run()), asyncio.create_task(watch())
    for number in range(100):
        asked = request_of("table", "QueryEntity")
        asked.id = str(number)
        buffer.record(answered(asked, Response(200)))
    await watching
    assert taken == [str(number) for number in range(100)]
    assert {0, 32, 64, 96} <= seen, "requests come in between"
    running.cancel()
    await asyncio.wait([running])
    buffer.record(answered(request_of("table", "QueryEntity"), Response(200)))
    collector.drain()
    assert len(taken) == 101


@pytest.mark.parametrize("fails", [False, True])
async def test_what_was_recorded_last_is_published_at_the_end(fails: bool) -> None:
    settings = Settings(location=None, analytics_seconds=1000)
    buffer = ExchangeBuffer([], lambda: NOW)
    async with open_store(settings) as store:
        dependencies = ServiceDependencies(engine=store.engine, accounts=store.directory, contents=store.contents)
        with suppress(ConnectionError):
            async with analytics(settings, store, FairScheduler(), buffer, None, dependencies):
                buffer.note("table", "acct", ALL)
                buffer.record(answered(request_of("table", "QueryEntity"), Response(200)))
                if fails:
                    raise ConnectionError
        assert (buffer.counts.lines, buffer.counts.blobs) == (1, 1)
