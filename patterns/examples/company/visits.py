"""Visits of the staff's pages, which are logged in blobs and found by their time."""

from datetime import UTC, datetime, timedelta

from azure.storage.blob import ContainerClient

from lazulite_patterns import BlobLog
from lazulite_patterns.effects.runtime import Runtime

NOON = datetime(2014, 7, 31, 12, tzinfo=UTC)


def show(container: ContainerClient) -> None:
    """Log a visit in each half hour, and read those of an hour: its blob alone is read."""
    times = iter([NOON + timedelta(minutes=30 * number) for number in range(-2, 4)])
    with BlobLog(container, "visits", runtime=Runtime(utc_now=lambda: next(times))) as log:
        for number in range(98, 104):
            log.append(f"/it/{number}")
        log.flush()
        print("visits at noon:", [each.record for each in log.between(NOON, NOON + timedelta(minutes=59))])
