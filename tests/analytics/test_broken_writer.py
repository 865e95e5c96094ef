"""A writer of logs that is broken: requests go on, and what becomes of their lines is counted."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest
from azure.data.tables import TableAnalyticsLogging

from lazulite.analytics.exchange_buffer import AnalyticsCounts
from lazulite.analytics.log_container import LogContainer
from lazulite.analytics.log_writer import LogWriter
from lazulite.app.telemetry import analytics_readings
from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.metadata import Metadata
from lazulite.server.observability.metrics import READINGS
from tests.analytics.world import ON, serving

ROOM = 40_000
"""What lines that wait may take: those of some 80 requests."""


@dataclass
class Disk:
    """What becomes of blobs of logs."""

    is_full: bool = False
    held: int = 0
    """How many blobs have come."""
    answers: threading.Event = field(default_factory=threading.Event)


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_requests_go_on_while_lines_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, put = Disk(), LogContainer.put

    async def put_or_not(container: LogContainer, account: str, folder: str, content: bytes, metadata: Metadata) -> str:
        disk.held += 1
        await asyncio.to_thread(disk.answers.wait)
        if disk.is_full:
            raise EngineUnavailableError("the disk is full")
        return await put(container, account, folder, content, metadata)

    monkeypatch.setattr(LogContainer, "put", put_or_not)
    monkeypatch.setattr("lazulite.app.analytics.LogWriter", partial(LogWriter, bytes_max=ROOM))
    with serving(services=("table",), seconds=0.02) as world:
        counts = world.counts
        table = world.tables.create_table("orders")
        world.tables.set_service_properties(analytics_logging=TableAnalyticsLogging(**ON))
        try:
            table.upsert_entity({"PartitionKey": "p", "RowKey": "r"})
            until(lambda: disk.held == 1)
            asked = 0
            while counts.dropped_lines == 0 and asked < 1000:  # There is room for some of them.
                table.get_entity("p", "r")
                asked += 1
            assert 20 < asked < 1000
            assert counts.lines == 0
            disk.is_full, dropped = True, counts.dropped_lines
            disk.answers.set()
            until(lambda: counts.dropped_lines > dropped + 20)
            table.upsert_entity({"PartitionKey": "p", "RowKey": "r"})
            disk.is_full = False
            table.upsert_entity({"PartitionKey": "p", "RowKey": "r"})
            until(lambda: counts.lines > 0)
        finally:
            disk.answers.set()
            disk.is_full = False
    assert counts.dropped_exchanges == 0
    assert counts.lines + counts.dropped_lines == asked + 3


def test_each_count_is_a_metric() -> None:
    readings = analytics_readings(AnalyticsCounts(dropped_lines=3, dropped_exchanges=4))
    assert readings["analytics_dropped_lines_total"] == 3
    assert readings["analytics_dropped_exchanges_total"] == 4
    assert set(readings) <= set(READINGS)
