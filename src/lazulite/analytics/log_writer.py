"""Makes lines of requests, and publishes them as blobs.

Invariants:
- lines wait in memory, within a bound; those that do not fit, or cannot be written, are dropped and counted;
- a blob has the lines of one account, service, version and hour, and is published whole;
- nothing that fails here is noticed by a request.

Source: reference §18.1.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from lazulite.analytics.exchange_buffer import AnalyticsCounts
from lazulite.analytics.log_container import TICKS_PER_HOUR, LogContainer, folder_of
from lazulite.analytics.log_lines import lines_of
from lazulite.analytics.operations import OperationClass
from lazulite.analytics.requests import LoggedRequest
from lazulite.engine.contract import EngineError
from lazulite.service.properties import Logging
from lazulite.table.model.edm import format_datetime

BLOB_BYTES_MAX: Final = 4 * 1024 * 1024
"""Lines of more bytes are published before their time."""
BYTES_MAX: Final = 32 * 1024 * 1024
"""What all lines that wait may take."""


class LogGroup(NamedTuple):
    """What the lines of one blob have in common."""

    account: str
    service: str
    version: str
    hour: int
    """Since 1601, in which their requests ended."""


class LogLines:
    """The lines of one blob, as they gather."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.size = 0
        self.classes: set[OperationClass] = set()
        self.count = self.first = self.last = 0
        """The number of lines; the earliest and the latest start of a request, in ticks."""

    def add(self, request: LoggedRequest, text: str, count: int) -> None:
        """Add the lines of a request."""
        self.texts.append(text)
        self.size += len(text)
        self.classes.add(request.operation_class)
        started = request.started
        self.last = max(self.last, started)
        if started < self.first or not self.first:
            self.first = started
        self.count += count

    def metadata(self, version: str) -> tuple[tuple[str, str], ...]:
        """Return the metadata of the blob, in the order of the names."""
        classes = ",".join(each for each in ("read", "write", "delete") if each in self.classes)
        facts = {"EndTime": _second(self.last), "LogType": classes, "LogVersion": version}
        return (*facts.items(), ("StartTime", _second(self.first)))


def is_logged(logging: Logging, operation_class: OperationClass) -> bool:
    """Return whether an account has requests of a class logged."""
    if operation_class == "read":
        return logging.read
    return logging.write if operation_class == "write" else logging.delete


class LogWriter:
    """Gathers lines, and publishes them. Implements `RequestConsumer`.

    Args:
        container: takes the blobs.
        counts: of lines and blobs.
        report: takes a line for people.
        bytes_max: what all lines that wait may take.
        blob_bytes_max: lines of more bytes are published before their time.
    """

    def __init__(
        self,
        container: LogContainer,
        counts: AnalyticsCounts,
        report: Callable[[str], None],
        bytes_max: int = BYTES_MAX,
        blob_bytes_max: int = BLOB_BYTES_MAX,
    ) -> None:
        self._container = container
        self._counts = counts
        self._report = report
        self._bytes_max = bytes_max
        self._blob_bytes_max = blob_bytes_max
        self._groups: dict[LogGroup, LogLines] = {}
        self._held_bytes = 0
        self._is_due = asyncio.Event()
        """A blob is full, or the process ends."""
        self._is_ending = self._has_failed = False

    def take(self, requests: Sequence[LoggedRequest]) -> None:
        """See `RequestConsumer`."""
        for request in requests:
            logging = request.properties.logging
            if is_logged(logging, request.operation_class):
                self._add(request, logging.version)

    async def run(self, seconds: float) -> None:
        """Publish with so many seconds between two times, full blobs before that, and the rest after `stop`."""
        while not self._is_ending:
            try:
                async with asyncio.timeout(seconds):
                    await self._is_due.wait()
            except TimeoutError:
                await self.publish()
            else:
                self._is_due.clear()
                await self.publish_full()
        await self.publish()

    def stop(self) -> None:
        """Let `run` end, once everything is published."""
        self._is_ending = True
        self._is_due.set()

    async def publish_full(self) -> None:
        """Publish the blobs that are full."""
        await self._publish([group for group, lines in self._groups.items() if self._fills(lines)])

    async def publish(self) -> None:
        """Publish everything that waits."""
        await self._publish(list(self._groups))

    def _add(self, request: LoggedRequest, version: str) -> None:
        lines = lines_of(request, version)
        text = f"{lines[0]}\n" if len(lines) == 1 else "".join([f"{line}\n" for line in lines])
        if self._held_bytes + len(text) > self._bytes_max:
            self._counts.dropped_lines += len(lines)
            return
        key = request.account, request.service, version, request.ended // TICKS_PER_HOUR
        gathered = self._groups.get(key)  # type: ignore[call-overload]  # equal to the named tuple, and made faster
        if gathered is None:
            gathered = self._groups[LogGroup(*key)] = LogLines()
        gathered.add(request, text, len(lines))
        self._held_bytes += len(text)
        if self._fills(gathered):
            self._is_due.set()

    def _fills(self, lines: LogLines) -> bool:
        return lines.size >= self._blob_bytes_max

    async def _publish(self, groups: Iterable[LogGroup]) -> None:
        for group in groups:
            lines = self._groups.pop(group)
            try:
                await self._put(group, lines)
            except EngineError as error:
                self._counts.dropped_lines += lines.count
                if not self._has_failed:
                    self._report(f"log lines of analytics are dropped: {error}")
                self._has_failed = True
            else:
                self._has_failed = False
                self._counts.lines += lines.count
                self._counts.blobs += 1
            finally:
                self._held_bytes -= lines.size

    async def _put(self, group: LogGroup, lines: LogLines) -> None:
        folder = folder_of(group.service, group.hour)
        await self._container.put(group.account, folder, "".join(lines.texts).encode(), lines.metadata(group.version))


def _second(ticks: int) -> str:
    return f"{format_datetime(ticks)[:19]}Z"
