"""Counts and columns of metrics, by the formulas of the reference."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.analytics.exchange_buffer import AnalyticsCounts
from lazulite.analytics.metrics import (
    COUNTS,
    LATE_TICKS,
    STATUSES,
    IntervalKey,
    MetricsCounter,
    Operations,
    Series,
    columns,
    partition_of,
    requests_in,
    rows,
    start_of,
)
from tests.analytics.counted import ACCOUNT, HOUR, MINUTE, START, Counted, asking

MINUTES, HOURS = (Series(ACCOUNT, "blob", period, is_secondary=False) for period in ("Minute", "Hour"))
REQUESTS = st.builds(
    lambda operation, authentication, status, started, total_ms, server_ms, length, is_secondary: Counted(
        operation,
        authentication,
        status,
        started=started,
        ended=START + 3 * MINUTE,
        total_ms=total_ms,
        server_ms=server_ms,
        request_body_bytes=length,
        is_secondary=is_secondary,
    ),
    st.sampled_from(["GetBlob", "PutBlob", "Unknown"]),
    st.sampled_from(["authenticated", "bearer", "sas", "anonymous"]),
    st.sampled_from(STATUSES),
    st.integers(START, START + 3 * MINUTE - 1),
    st.integers(0, 5000).map(float),
    st.integers(0, 5000).map(float),
    st.integers(0, 1 << 40),
    st.booleans(),
)
COLUMNS = [
    "TotalIngress",
    "TotalEgress",
    "TotalRequests",
    "TotalBillableRequests",
    "Availability",
    "AverageE2ELatency",
    "AverageServerLatency",
    "PercentSuccess",
    "PercentThrottlingError",
    "PercentTimeoutError",
    "PercentServerOtherError",
    "PercentClientOtherError",
    "PercentAuthorizationError",
    "PercentNetworkError",
    "Success",
    "ThrottlingError",
    "ClientTimeoutError",
    "ServerTimeoutError",
    "ClientOtherError",
    "ServerOtherError",
    "AuthorizationError",
    "NetworkError",
    "AnonymousSuccess",
    "AnonymousThrottlingError",
    "AnonymousClientTimeoutError",
    "AnonymousServerTimeoutError",
    "AnonymousClientOtherError",
    "AnonymousServerOtherError",
    "AnonymousAuthorizationError",
    "AnonymousNetworkError",
    "SASSuccess",
    "SASThrottlingError",
    "SASClientTimeoutError",
    "SASServerTimeoutError",
    "SASClientOtherError",
    "SASServerOtherError",
    "SASAuthorizationError",
    "SASNetworkError",
]


def counted(*requests: Counted) -> MetricsCounter:
    counter = MetricsCounter(AnalyticsCounts())
    counter.take(requests)
    counter.fold()
    return counter


def found(operations: Operations, row: str = "user;All") -> dict[str, int | float]:
    return dict(rows(operations, include_apis=True))[row]


def test_the_sample_of_the_reference() -> None:
    def requests(operation: str, count: int, e2e: float, server: float) -> list[Counted]:
        return [Counted(operation, total_ms=e2e, server_ms=server)] * count

    given_ = [*requests("QueryEntities", 5, 143.8, 7.8), *requests("QueryEntity", 1, 3, 3)]
    given_ += requests("UpdateEntity", 1, 9, 6)
    operations = counted(*given_).total(IntervalKey(MINUTES, START))
    total = found(operations)
    assert total["TotalRequests"] == total["TotalBillableRequests"] == total["Success"] == 7
    assert (total["TotalIngress"], total["TotalEgress"]) == (7 * 110, 7 * 220)
    assert total["AverageE2ELatency"] == pytest.approx(104.4286, abs=1e-4)
    assert total["AverageServerLatency"] == pytest.approx(6.857143, abs=1e-6)
    assert total["Availability"] == total["PercentSuccess"] == 100
    assert found(operations, "user;QueryEntities")["AverageE2ELatency"] == pytest.approx(143.8)
    assert found(operations, "user;UpdateEntity")["AverageServerLatency"] == 6
    assert [row for row, _ in rows(operations, include_apis=True)] == [
        *("user;All", "system;All", "user;QueryEntities", "user;QueryEntity", "user;UpdateEntity")
    ]
    assert [row for row, _ in rows(operations, include_apis=False)] == ["user;All", "system;All"]


def test_the_columns_are_those_of_the_reference() -> None:
    row = columns([0] * COUNTS)
    assert sorted(row) == sorted(COLUMNS)
    doubles = {name for name, value in row.items() if isinstance(value, float)}
    assert doubles == {name for name in COLUMNS if name.startswith(("Availability", "Average", "Percent"))}


def test_an_interval_without_requests() -> None:
    user, system = dict(rows({}, include_apis=True)).values()
    assert user == system
    assert user.pop("Availability") == 100
    assert set(user.values()) == {0}


@given(st.lists(REQUESTS, min_size=1))
def test_each_column_by_its_definition(requests: list[Counted]) -> None:
    """Compare with a second reading of the reference, request by request."""
    row = found(
        counted(*(each._replace(is_secondary=False, started=START) for each in requests)).total(
            IntervalKey(MINUTES, START)
        )
    )
    prefixes = {"authenticated": "", "bearer": "", "sas": "SAS", "anonymous": "Anonymous"}
    names = [prefixes[each.authentication] + each.status for each in requests]
    for name in COLUMNS[14:]:
        assert row[name] == names.count(name)
    count = len(requests)
    unbilled = [name for name in names if "Throttling" in name or "Server" in name]
    unbilled += [name for name in names if name == "AnonymousAuthorizationError"]
    billable = count - len(unbilled)
    ignored = sum("Throttling" in name or name == "AnonymousAuthorizationError" for name in names)
    assert (row["TotalRequests"], row["TotalBillableRequests"]) == (count, billable)
    assert row["Availability"] == pytest.approx(100 * billable / (count - ignored) if count > ignored else 100)
    for share in ("Success", "ThrottlingError", "TimeoutError", "ServerOtherError", "ClientOtherError", "NetworkError"):
        assert row[f"Percent{share}"] == pytest.approx(100 * sum(name.endswith(share) for name in names) / count)
    refused = sum(name.endswith("AuthorizationError") for name in names)
    assert row["PercentAuthorizationError"] == pytest.approx(100 * refused / count)
    assert row["TotalIngress"] == sum(each.request_head_bytes + each.request_body_bytes for each in requests)
    assert row["TotalEgress"] == sum(each.response_head_bytes + each.response_body_bytes for each in requests)
    good = [each for each in requests if each.status == "Success"]
    assert row["AverageE2ELatency"] == pytest.approx(sum(e.total_ms for e in good) / len(good) if good else 0)
    assert row["AverageServerLatency"] == pytest.approx(sum(e.server_ms for e in good) / len(good) if good else 0)


@given(requests=st.lists(REQUESTS), cuts=st.lists(st.integers(0, 20)))
def test_each_request_counts_once_in_each_of_four_rows(requests: list[Counted], cuts: list[int]) -> None:
    """In `All` and its operation, of its minute and of its hour, however they come."""
    counter, at = MetricsCounter(AnalyticsCounts()), 0
    changed: set[IntervalKey] = set()
    for cut in [*sorted(cuts), len(requests)]:
        counter.take(requests[at:cut])
        changed |= counter.fold()
        at = max(at, cut)
    assert counter.fold() == set()
    for is_secondary in (False, True):
        mine = [each for each in requests if each.is_secondary is is_secondary]
        for period, ticks in (("Minute", MINUTE), ("Hour", HOUR)):
            series = Series(ACCOUNT, "blob", period, is_secondary)  # type: ignore[arg-type]  # both are periods
            keys = [key for key in changed if key.series == series]
            assert sum(requests_in(counter.total(key)) for key in keys) == len(mine)
            for key in keys:
                here = [each for each in mine if each.started // ticks * ticks == key.start]
                total = counter.total(key)
                assert found(total)["TotalRequests"] == len(here) > 0
                for operation in total:
                    expected = sum(each.operation == operation for each in here)
                    assert found(total, f"user;{operation}")["TotalRequests"] == expected


def test_a_304_is_a_success() -> None:
    row = found(counted(Counted(status="ClientOtherError", http_status=304)).total(IntervalKey(HOURS, START)))
    assert (row["Success"], row["ClientOtherError"], row["AverageE2ELatency"]) == (1, 0, 3)


def test_only_what_is_asked_for_is_counted() -> None:
    counter = MetricsCounter(AnalyticsCounts())
    counter.take([Counted(properties=asking(minute=False, hour=False))])
    assert counter.fold() == set()
    counter.take([Counted(properties=asking(minute=False))])
    assert IntervalKey(HOURS, START) in counter.fold()


def test_a_request_belongs_to_the_interval_of_its_start_unless_that_is_long_ago() -> None:
    usual = counted(Counted(started=START + MINUTE - 1, ended=START + MINUTE))
    assert requests_in(usual.total(IntervalKey(MINUTES, START))) == 1
    slow = counted(Counted(started=START, ended=START + 2 * HOUR))
    assert requests_in(slow.total(IntervalKey(MINUTES, START + 2 * HOUR - LATE_TICKS))) == 1


def test_memory_is_bounded_and_what_is_dropped_is_counted() -> None:
    counts = AnalyticsCounts()
    counter = MetricsCounter(counts, counters_max=4)
    counter.take([Counted(f"Operation{number % 6}") for number in range(60)])
    assert counts.uncounted == 20
    key = IntervalKey(MINUTES, START)
    counter.fold()
    assert requests_in(counter.total(key)) == 40
    counter.take([Counted()])
    assert counts.uncounted == 21
    counter.forget(START + 2 * HOUR, {key})
    assert requests_in(counter.total(key)) == 40
    assert counter.total(IntervalKey(HOURS, START)) == {}
    counter.forget(START + 2 * HOUR, set())
    counter.take([Counted(f"Operation{number}") for number in range(5)])
    assert counts.uncounted == 22


@given(st.datetimes(datetime(1602, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))
def test_partition_keys(time: datetime) -> None:
    minute = time.replace(second=0, microsecond=0)
    ticks = (minute - datetime(1601, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 10
    assert partition_of(ticks) == f"{time.year:04}{time:%m%dT%H%M}"
    assert start_of(partition_of(ticks)) == ticks


def test_names_of_tables() -> None:
    assert Series("a", "blob", "Hour", is_secondary=False).table == "$MetricsHourPrimaryTransactionsBlob"
    assert Series("a", "queue", "Minute", is_secondary=True).table == "$MetricsMinuteSecondaryTransactionsQueue"
    assert partition_of(START) == "20241004T0000"
