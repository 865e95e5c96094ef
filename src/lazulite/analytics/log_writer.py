"""Makes lines of requests, and publishes them as blobs.

Invariants:
- lines wait in memory, within a bound; those that do not fit, or cannot be written, are dropped and counted;
- a blob has the lines of one account, service, version and hour, and is published whole;
- requests that were refused without good credentials have a bounded share of an account's lines: anybody can send them;
- nothing that fails here is noticed by a request.

Source: reference §18.1.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from lazulite.analytics.exchange_buffer import AnalyticsCounts
from lazulite.analytics.log_container import TICKS_PER_HOUR, LogContainer, folder_of
from lazulite.analytics.log_lines import texts_of
from lazulite.analytics.operations import OperationClass
from lazulite.analytics.requests import AnalyticsRequest, RequestForm
from lazulite.engine.contract import EngineError
from lazulite.table.model.edm import format_datetime

BLOB_BYTES_MAX: Final = 4 * 1024 * 1024
"""Lines of more bytes are published before their time."""
BYTES_MAX: Final = 32 * 1024 * 1024
"""What all lines that wait may take."""
UNVERIFIED_BYTES_MAX: Final = 256 * 1024
"""What lines of refused requests without good credentials may take in a minute, of one account and service."""
_TICKS_PER_MINUTE: Final = TICKS_PER_HOUR // 60
_LIKE: Final[Callable[[AnalyticsRequest], tuple[RequestForm | None, OperationClass]]] = attrgetter(
    "form", "operation_class"
)
"""What requests whose lines are made together have in common. Only those of templates have a form."""


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
        self.texts: list[bytes] = []
        self.size = 0
        self.classes: set[OperationClass] = set()
        self.count = self.first = self.last = 0
        """The number of lines; the earliest and the latest start of a request, in ticks."""

    def add(self, text: bytes, count: int, operation_class: OperationClass, started: Sequence[int]) -> None:
        """Add lines of requests that were started at some ticks."""
        self.texts.append(text)
        self.size += len(text)
        self.count += count
        self.classes.add(operation_class)
        self.last = max(self.last, *started)
        self.first = min(self.first or started[0], *started)

    def metadata(self, version: str) -> tuple[tuple[str, str], ...]:
        """Return the metadata of the blob, in the order of the names."""
        classes = ",".join(each for each in ("read", "write", "delete") if each in self.classes)
        facts = {"EndTime": _second(self.last), "LogType": classes, "LogVersion": version}
        return (*facts.items(), ("StartTime", _second(self.first)))


def is_refusal(request: AnalyticsRequest) -> bool:
    """Return whether a request failed."""
    return request.status != "Success" and request.http_status != HTTPStatus.NOT_MODIFIED


class LineQuota:
    """What the lines of refused requests without good credentials have taken in the current minute."""

    def __init__(self) -> None:
        self._taken: dict[tuple[str, str], tuple[int, int]] = {}
        """The minute and the bytes, by account and service. Only services whose logs are on have an item."""

    def take(self, account: str, service: str, minute: int, size: int) -> bool:
        """Count bytes; return whether there was room for them."""
        then, taken = self._taken.get((account, service), (minute, 0))
        taken = size if then < minute else taken + size
        if taken > UNVERIFIED_BYTES_MAX:
            return False
        self._taken[account, service] = max(then, minute), taken
        return True


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
        self._unverified = LineQuota()
        self._is_due = asyncio.Event()
        """A blob is full, or the process ends."""
        self._is_ending = self._has_failed = False

    def take(self, requests: Sequence[AnalyticsRequest]) -> None:
        """See `RequestConsumer`."""
        for (form, operation_class), run in groupby(requests, _LIKE):
            alike: list[AnalyticsRequest] = list(run)
            if not getattr(alike[0].properties.logging, operation_class):  # Its fields have the names of the classes.
                continue
            if form is None or alike[0].ended // TICKS_PER_HOUR != alike[-1].ended // TICKS_PER_HOUR:
                for request in alike:
                    self._add([request])
            else:
                self._add(alike)

    def _add(self, requests: Sequence[AnalyticsRequest]) -> None:
        """Add the lines of requests that have one class and one group, all or none of them."""
        request = requests[0]
        version, ended = request.properties.logging.version, request.ended
        written, count = texts_of(requests, version)
        text = written.encode()
        size = len(text)
        if self._held_bytes + size > self._bytes_max:
            self._counts.dropped_lines += count
            return
        if (
            not request.is_verified
            and is_refusal(request)
            and not self._unverified.take(request.account, request.service, ended // _TICKS_PER_MINUTE, size)
        ):
            self._counts.refused_lines += count
            return
        group = LogGroup(request.account, request.service, version, ended // TICKS_PER_HOUR)
        lines = self._groups.setdefault(group, LogLines())
        lines.add(text, count, request.operation_class, [each.started for each in requests])
        self._held_bytes += size
        if lines.size >= self._blob_bytes_max:
            self._is_due.set()

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
        await self._container.put(group.account, folder, b"".join(lines.texts), lines.metadata(group.version))


def _second(ticks: int) -> str:
    return f"{format_datetime(ticks)[:19]}Z"
