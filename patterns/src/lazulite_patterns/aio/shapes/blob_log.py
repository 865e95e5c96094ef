"""Logs in append blobs, with an asynchronous client."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from lazulite_patterns.aio.driver import Driver
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.shapes.protocols.blob_log import LogWriter
from lazulite_patterns.shapes.protocols.log_format import LogNames, LogRecord, span
from lazulite_patterns.shapes.protocols.log_reading import LogReader

if TYPE_CHECKING:
    from azure.storage.blob.aio import ContainerClient


class BlobLog:
    """A log of many records in append blobs, which any number of processes write and read.

    Attributes:
        client: the SDK's client of the container.
        driver: what runs the protocols.
        durable: whether `append` returns after the record is in a blob.

    It is a context manager, which closes the log at the end. Every method raises `Rejected` for what the service
    rejects.
    """

    def __init__(
        self,
        container: "ContainerClient",
        name: str,
        *,
        every: Literal["hour", "day"] = "hour",
        flush_seconds: float = 5,
        flush_bytes: int = 1_000_000,
        durable: bool = False,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            container: the client of the container. Its own retries are not used.
            name: of the log: letters, digits, `-` and `_`, in parts with `/` between them.
            every: the period after which a blob is closed. All processes of a log have the same.
            flush_seconds: the age of the oldest record in memory, from which on `append` flushes.
            flush_bytes: octets in memory, from which on `append` flushes.
            durable: whether `append` returns after the record is in a blob.
            policy: deadlines of requests.
            runtime: clock, randomness and failpoints, for tests.

        Raises:
            ValueError: the log cannot have this name.
        """
        self.client = container
        self.durable = durable
        own = container.container_name
        self.driver = Driver({}, runtime, containers={own: container})
        names = LogNames(name, every)
        self._writer = LogWriter(own, names, flush_bytes, flush_seconds, policy)
        self._reader = LogReader(own, names, policy)
        self._lock = asyncio.Lock()

    async def append(self, record: object) -> None:
        """Append a record: what JSON has, 4 MiB at most. It waits in memory until a flush, unless the log is durable.

        Raises:
            TypeError: JSON has no such record.
            ValueError: the record exceeds 4 MiB.
            Unavailable: a flush was due, and was not answered before the deadline. The record was not taken; if the
                log is durable, it may have been taken, and the next flush appends it.
        """
        async with self._lock:
            await self.driver.run(self._writer.append(record))
        if self.durable:  # One flush is of all records that wait for it.
            await self.flush()

    async def flush(self) -> None:
        """Append all records that wait in memory.

        Raises:
            Unavailable: there was no answer before the deadline. The records wait for the next flush.
        """
        async with self._lock:
            await self.driver.run(self._writer.flush())

    async def close(self) -> None:
        """Append all records that wait in memory, and close the blob. A later `append` opens another one.

        Raises:
            Unavailable: as `flush` does.
        """
        async with self._lock:
            await self.driver.run(self._writer.close())

    async def between(self, first: datetime, last: datetime) -> AsyncIterator[LogRecord]:
        """Yield the records of a time to another one, both included, oldest first.

        Args:
            first: with a zone.
            last: with a zone.

        Raises:
            ValueError: a time has no zone.
            Inconsistent: another program wrote to a blob of the log.
            Unavailable: there was no answer before the deadline.
        """
        wanted = span(first, last)
        for day in self._reader.names.days(wanted):
            for cursors in await self.driver.run(self._reader.periods(day, wanted)):
                while found := await self.driver.run(self._reader.page(cursors, wanted)):
                    for each in found:
                        yield each

    async def __aenter__(self) -> "BlobLog":
        """Return this object."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the log."""
        await self.close()
