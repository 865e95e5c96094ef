"""Counts of requests by account, service, operation and interval, and the columns of the metrics tables made of them.

Invariants: counting is pure but for its own memory, which is bounded: a request that would need a counter beyond
`COUNTERS_MAX` is dropped and counted. Counters are integers and only grow, so sums over processes are exact, and a
greater total is a later one. A request belongs to the interval in which it started, but at most `LATE_TICKS` before its
end.

Source: Metrics Table Schema; the post *Windows Azure Storage Metrics* of August 2011 (intervals, 304, latencies of
successful requests alone). *Unverified*: the availability of an interval without requests is 100; requests with a
bearer token count as those with a key.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from lazulite.analytics.exchange_buffer import AnalyticsCounts
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.service.properties import Metrics, ServiceProperties

Period: TypeAlias = Literal["Minute", "Hour"]
Counts: TypeAlias = list[int]
"""The 24 counters of `COUNTERS`, then `_SUMS`."""

TICKS: Final[Mapping[Period, int]] = {"Minute": 60 * TICKS_PER_SECOND, "Hour": 3600 * TICKS_PER_SECOND}
LATE_TICKS: Final = TICKS["Hour"] // 2
"""How long an interval is open for requests that have not ended."""
COUNTERS_MAX = 50_000
"""The most counters of a process: an operation of an account in an interval each, of some 500 bytes."""

STATUSES: Final = (
    "Success",
    "ThrottlingError",
    "ClientTimeoutError",
    "ServerTimeoutError",
    "ClientOtherError",
    "ServerOtherError",
    "AuthorizationError",
    "NetworkError",
)
_CREDENTIALS: Final = ("", "Anonymous", "SAS")
COUNTERS: Final = tuple(f"{credentials}{status}" for credentials in _CREDENTIALS for status in STATUSES)
"""The columns that count requests: by credentials and status."""
_SUMS: Final = ("ingress", "egress", "end-to-end microseconds", "server microseconds")
_INGRESS, _EGRESS, _END_TO_END, _SERVER = range(len(COUNTERS), len(COUNTERS) + len(_SUMS))
COUNTS: Final = len(COUNTERS) + len(_SUMS)

_AT: Final = {name: index for index, name in enumerate(COUNTERS)}
_OFFSETS: Final = {
    "authenticated": 0,
    "bearer": 0,
    "anonymous": len(STATUSES),
    "sas": 2 * len(STATUSES),
}
_STATUS_AT: Final = {status: index for index, status in enumerate(STATUSES)}
_SUCCESS: Final = _STATUS_AT["Success"]
_NOT_MODIFIED: Final = 304

ALL: Final = "All"
_EPOCH: Final = datetime(1601, 1, 1, tzinfo=UTC)
_FORM: Final = "%Y%m%dT%H%M"


def _all_forms(*statuses: str) -> tuple[int, ...]:
    return tuple(_AT[f"{credentials}{status}"] for status in statuses for credentials in _CREDENTIALS)


_BILLABLE: Final = (
    *_all_forms("Success", "NetworkError", "ClientOtherError", "ClientTimeoutError"),
    _AT["AuthorizationError"],
    _AT["SASAuthorizationError"],
)
_NOT_IN_AVAILABILITY: Final = (*_all_forms("ThrottlingError"), _AT["AnonymousAuthorizationError"])
_SUCCESSES: Final = _all_forms("Success")
_PERCENT: Final[Mapping[str, tuple[int, ...]]] = {
    "PercentSuccess": _SUCCESSES,
    "PercentThrottlingError": _all_forms("ThrottlingError"),
    "PercentTimeoutError": _all_forms("ClientTimeoutError", "ServerTimeoutError"),
    "PercentServerOtherError": _all_forms("ServerOtherError"),
    "PercentClientOtherError": _all_forms("ClientOtherError"),
    "PercentAuthorizationError": _all_forms("AuthorizationError"),
    "PercentNetworkError": _all_forms("NetworkError"),
}


class Series(NamedTuple):
    """The rows of one table of transactions."""

    account: str
    service: str
    """`blob`, `table` or `queue`."""
    period: Period
    is_secondary: bool

    @property
    def table(self) -> str:
        """The name of the table."""
        place = "Secondary" if self.is_secondary else "Primary"
        return f"$Metrics{self.period}{place}Transactions{self.service.title()}"

    def metrics(self, properties: ServiceProperties) -> Metrics:
        """Return what the properties of the service say of the table."""
        return properties.minute_metrics if self.period == "Minute" else properties.hour_metrics


class IntervalKey(NamedTuple):
    """One interval of a series."""

    series: Series
    start: int
    """In ticks."""

    @property
    def end(self) -> int:
        """The first tick after it."""
        return self.start + TICKS[self.series.period]

    @property
    def partition(self) -> str:
        """The PartitionKey of its rows."""
        return partition_of(self.start)


def partition_of(ticks: int) -> str:
    """Return the PartitionKey of an interval that begins at a tick: `yyyyMMddTHHmm`, UTC."""
    return (_EPOCH + timedelta(microseconds=ticks // 10)).strftime(_FORM)


def start_of(partition: str) -> int:
    """Return the tick at which an interval begins, given the PartitionKey.

    Raises:
        ValueError: it is malformed.
    """
    return (datetime.strptime(partition, _FORM).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1) * 10


class CountedRequest(Protocol):
    """What is counted of a request. See `LoggedRequest`."""

    @property
    def account(self) -> str: ...  # noqa: D102 - see `LoggedRequest`
    @property
    def service(self) -> str: ...  # noqa: D102
    @property
    def properties(self) -> ServiceProperties: ...  # noqa: D102
    @property
    def operation(self) -> str: ...  # noqa: D102
    @property
    def authentication(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def http_status(self) -> int: ...  # noqa: D102
    @property
    def is_secondary(self) -> bool: ...  # noqa: D102
    @property
    def started(self) -> int: ...  # noqa: D102
    @property
    def ended(self) -> int: ...  # noqa: D102
    @property
    def total_ms(self) -> float: ...  # noqa: D102
    @property
    def server_ms(self) -> float: ...  # noqa: D102
    @property
    def request_head_bytes(self) -> int: ...  # noqa: D102
    @property
    def request_body_bytes(self) -> int: ...  # noqa: D102
    @property
    def response_head_bytes(self) -> int: ...  # noqa: D102
    @property
    def response_body_bytes(self) -> int: ...  # noqa: D102


Operations: TypeAlias = dict[str, Counts]
"""The counts of each operation."""


class MetricsCounter:
    """Counts the requests of a process. A `RequestConsumer`.

    Args:
        counts: what became of requests: those for which there is no counter are noted there.
        counters_max: the most counters that it holds before it adds none.
    """

    def __init__(self, counts: AnalyticsCounts, counters_max: int = COUNTERS_MAX) -> None:
        self._counts = counts
        self._counters_max = counters_max
        self._counters = 0
        self._fresh: dict[tuple[str, str, bool, int], Operations] = {}
        """Counts since `fold`, by account, service, place and minute."""
        self._totals: dict[IntervalKey, Operations] = {}

    def take(self, requests: Sequence[CountedRequest]) -> None:
        """Count requests whose account asks for metrics."""
        minute_ticks, fresh = TICKS["Minute"], self._fresh
        for request in requests:
            properties = request.properties
            if not (properties.minute_metrics.enabled or properties.hour_metrics.enabled):
                continue
            minute = max(request.started, request.ended - LATE_TICKS) // minute_ticks
            key = (request.account, request.service, request.is_secondary, minute)
            operations = fresh.get(key)
            counts = None if operations is None else operations.get(request.operation)
            if counts is None:
                if self._counters >= self._counters_max:
                    self._counts.uncounted += 1
                    continue
                self._counters += 1
                counts = fresh.setdefault(key, {})[request.operation] = [0] * COUNTS
            _count(counts, request)

    def fold(self) -> set[IntervalKey]:
        """Add what was counted to the totals of its minutes and hours; return the intervals that have changed."""
        changed = set()
        for (account, service, is_secondary, minute), operations in self._fresh.items():
            start = minute * TICKS["Minute"]
            for period, ticks in TICKS.items():
                key = IntervalKey(Series(account, service, period, is_secondary), start // ticks * ticks)
                total = self._totals.setdefault(key, {})
                before = len(total)
                add_all(total, operations)
                self._counters += len(total) - before
                changed.add(key)
            self._counters -= len(operations)
        self._fresh.clear()
        return changed

    def total(self, key: IntervalKey) -> Operations:
        """Return what the process has counted in an interval until the last `fold`."""
        return self._totals.get(key, {})

    def forget(self, ended_before: int, kept: Set[IntervalKey]) -> None:
        """Release the counters of intervals that ended before a tick, but for some of them."""
        for key in [key for key in self._totals if key.end < ended_before and key not in kept]:
            self._counters -= len(self._totals.pop(key))


def _count(counts: Counts, request: CountedRequest) -> None:
    status = _STATUS_AT[request.status]
    if request.http_status == _NOT_MODIFIED:
        status = _SUCCESS  # Of a conditional read: what the client has is good.
    counts[_OFFSETS[request.authentication] + status] += 1
    counts[_INGRESS] += request.request_head_bytes + request.request_body_bytes
    counts[_EGRESS] += request.response_head_bytes + request.response_body_bytes
    if status == _SUCCESS:
        counts[_END_TO_END] += round(request.total_ms * 1000)
        counts[_SERVER] += round(request.server_ms * 1000)


def add_all(total: Operations, more: Mapping[str, Sequence[int]]) -> None:
    """Add counts to the counts of the same operations."""
    for operation, counts in more.items():
        held = total.get(operation)
        total[operation] = [*counts] if held is None else [a + b for a, b in zip(held, counts, strict=True)]


def sum_of(counted: Iterable[Sequence[int]]) -> Counts:
    """Return the sum of counts; zeros if there are none."""
    return [sum(column) for column in zip([0] * COUNTS, *counted, strict=True)]


def requests_in(operations: Operations) -> int:
    """Return how many requests were counted in all."""
    return sum(sum(counts[: len(COUNTERS)]) for counts in operations.values())


def rows(operations: Operations, *, include_apis: bool) -> Iterator[tuple[str, dict[str, int | float]]]:
    """Yield the RowKey and the columns of each row of an interval, `user;All` first.

    Args:
        operations: the total of all processes.
        include_apis: whether each operation has a row.
    """
    yield f"user;{ALL}", columns(sum_of(operations.values()))
    yield f"system;{ALL}", columns([0] * COUNTS)  # Analytics writes below HTTP.
    if include_apis:
        yield from ((f"user;{operation}", columns(operations[operation])) for operation in sorted(operations))


def columns(counts: Sequence[int]) -> dict[str, int | float]:
    """Return the 38 columns of a row: an int is an Int64, a float a Double."""
    requests, billable = sum(counts[: len(COUNTERS)]), _of(counts, _BILLABLE)
    successes = _of(counts, _SUCCESSES)
    found: dict[str, int | float] = {
        "TotalIngress": counts[_INGRESS],
        "TotalEgress": counts[_EGRESS],
        "TotalRequests": requests,
        "TotalBillableRequests": billable,
        "Availability": _percent(billable, requests - _of(counts, _NOT_IN_AVAILABILITY), of_none=100.0),
        "AverageE2ELatency": _milliseconds(counts[_END_TO_END], successes),
        "AverageServerLatency": _milliseconds(counts[_SERVER], successes),
    }
    found |= {name: _percent(_of(counts, indices), requests, of_none=0.0) for name, indices in _PERCENT.items()}
    return found | dict(zip(COUNTERS, counts, strict=False))


def _of(counts: Sequence[int], indices: Sequence[int]) -> int:
    return sum([counts[index] for index in indices])


def _percent(part: int, whole: int, of_none: float) -> float:
    return 100 * part / whole if whole else of_none


def _milliseconds(microseconds: int, count: int) -> float:
    return microseconds / 1000 / count if count else 0.0
