"""What lines of logs and samples of rows say about a table."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from lazulite.advise.advice import advise
from lazulite.advise.layout import described
from lazulite.advise.observed import LogRecorder, with_sample, workload_observed
from lazulite.advise.sample import TableSample
from lazulite.advise.workload import Property, Workload
from lazulite.analytics.log_reader import LogLine, read_line
from lazulite.partitions.targets import CURRENT
from lazulite.traffic.meter import Resource
from lazulite.traffic.recording import Recording

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
ORDERS = Resource("acct", "table", "orders")


def line(second: float, operation: str, url: str = "", key: str = "", number: int = 0, request: str = "r") -> LogLine:
    start = (NOON + timedelta(seconds=second)).isoformat(timespec="microseconds").replace("+00:00", "0Z")
    key = key or "/acct/Orders"
    address = f"https://acct.table.core.windows.net/Orders{url}".replace("&", "&amp;")
    text = (
        f'1.0;{start};{operation};Success;200;5;4;authenticated;acct;acct;table;"{address}";"{key}";{request};{number};'
        f'127.0.0.1:1;2019-02-02;300;0;200;0;0;;;;;;"agent";;"id"'
    )
    return read_line(text)


def recorder(lines: Sequence[LogLine]) -> tuple[Recording, LogRecorder]:
    recording = Recording(b"")
    found = LogRecorder(recording)
    for each in lines:
        found.add(each)
    found.end()
    return recording, found


def filtered(text: str, more: str = "") -> str:
    return f"()?$filter={quote(text)}{more}"


def test_lines_say_what_was_asked_and_written() -> None:
    lines = [
        *(line(n, "QueryEntities", filtered(f"Customer eq 'c{n % 5}' and Time gt 5")) for n in range(40)),
        line(41, "QueryEntities", filtered("Customer eq 'c1' and Time gt 5", "&NextPartitionKey=x")),
        line(42, "QueryEntity", key="/acct/Orders/p/r"),
        line(43, "InsertEntity", key="/acct/Orders/p/r1"),
        line(44, "EntityGroupTransaction", "/$batch", request="b"),
        *(line(44, "InsertEntity", key=f"/acct/Orders/p/b{n}", number=n + 1, request="b") for n in range(3)),
        line(50, "QueryTables"),
        line(100, "QueryEntities", filtered("Customer eq")),
    ]
    recording, found = recorder(lines)
    record = recording.tables[ORDERS]
    assert found.seconds == 100
    assert found.unreadable == 1
    assert {shape[0]: count.requests for shape, count in record.queries.items()} == {
        (("Customer", "eq"), ("Time", "range")): 40,
        (("PartitionKey", "eq"), ("RowKey", "eq")): 1,
    }
    assert record.values["Customer"].distinct == 5
    assert (record.single.requests, record.batches.requests, record.batches.entities) == (1, 1, 3)
    workload = workload_observed(ORDERS, record, found.seconds, "a log", None, rows=1000)
    assert [query.name for query in workload.queries] == ["Customer eq and Time range", "PartitionKey eq and RowKey eq"]
    assert workload.queries[0].rate == 1.0, "ten in ten seconds"
    assert [(write.name, write.entities, write.atomic) for write in workload.writes] == [
        ("single writes", 1, False),
        ("batches", 3, True),
    ]
    assert advise(workload, CURRENT).today is not None


def test_first_rows_of_a_partition_rely_on_the_order_of_keys() -> None:
    recording, found = recorder([line(0, "QueryEntities", filtered("PartitionKey eq 'ann'", "&$top=20"))])
    (query,) = workload_observed(ORDERS, recording.tables[ORDERS], found.seconds, "a log", None, 10).queries
    assert (query.order, query.top, query.name) == ("RowKey", 20, "first 20 of PartitionKey eq")


def test_failed_requests_and_other_services_are_left_out() -> None:
    failed = line(0, "QueryEntity", key="/acct/Orders/p/r")._replace(status="ClientOtherError")
    recording, found = recorder([failed, line(0, "QueryEntity")._replace(service="queue")])
    assert recording.tables == {}
    assert found.first is None


def entity(number: int) -> dict[str, object]:
    return {
        "odata.etag": "x",
        "PartitionKey": f"{number:05}",
        "RowKey": "",
        "Timestamp": (NOON + timedelta(seconds=number)).isoformat(),
        "City": f"city{number % 20}",
        "Country": f"country{number % 5}",
        "Mail": f"{number}@x",
        "When@odata.type": "Edm.DateTime",
        "When": (NOON + timedelta(seconds=number)).isoformat(),
        "Total": number * 7 % 100 + 0.5,
        "Long": "x" * 100 + str(number % 3),
        **({"Rare": True} if number == 7 else {}),
    }


@pytest.fixture(scope="module")
def sample() -> TableSample:
    found = TableSample()
    for number in range(400):
        found.add(entity(number))
    return found


def test_a_sample_says_what_properties_are_like(sample: TableSample) -> None:
    found = sample.properties()
    assert (found["City"].distinct, found["City"].busiest, found["City"].rises) == (20, 0.05, False)
    assert found["When"] == Property(name="When", distinct=400, busiest=1 / 400, rises=True, type="time")
    assert (found["PartitionKey"].rises, found["Total"].type, found["Rare"].distinct) == (True, "double", 2)
    assert found["Long"].distinct == 3
    assert set(sample.unique()) == {"PartitionKey", "Mail"}
    assert sample.dependent(["City", "Country"]) == {"City": "Country"}
    assert "odata.etag" not in sample.names


def test_a_sample_fills_in_what_is_not_declared(sample: TableSample) -> None:
    declared = Workload(name="t", rows=1_000_000, properties={"City": Property(name="City", distinct=3_000)})
    found = with_sample(declared, sample)
    assert found.spread(("City",)).distinct == 3_000
    assert found.spread(("Country",)).distinct == 5
    assert ("Mail",) in found.unique


def test_logs_and_a_sample_lead_to_other_keys(sample: TableSample) -> None:
    lines = [line(n, "QueryEntities", filtered(f"City eq 'city{n % 20}'")) for n in range(50)]
    lines += [line(n, "InsertEntity", key=f"/acct/Orders/{n:05}/") for n in range(200)]
    recording, found = recorder(lines)
    workload = workload_observed(ORDERS, recording.tables[ORDERS], found.seconds, "a log", sample)
    advice = advise(workload, CURRENT)
    assert advice.today is not None
    assert advice.today.appended is not None, "the PartitionKey rises"
    assert [each.kind for each in advice.today.accesses] == ["table scan"]
    assert described(advice.best.layout, {}) == "PartitionKey = City, RowKey = old PartitionKey"
    assert [each.properties for each in advice.indexes] == [("City",)]


@pytest.mark.parametrize(("returned", "expected"), [(20, 20), (3, 0)])
def test_the_size_of_pages_is_no_limit(returned: int, expected: int) -> None:
    recording = Recording(b"")
    conditions = (("PartitionKey", "eq"),)
    recording.note_query(ORDERS, conditions, (), 0, top=20, scanned=returned, returned=returned)
    (query,) = workload_observed(ORDERS, recording.tables[ORDERS], 1, "a recording", None, 10).queries
    assert query.top == expected


def test_good_keys_are_kept() -> None:
    recording, found = recorder([line(n, "QueryEntity", key=f"/acct/Orders/p{n % 10}/r{n}") for n in range(50)])
    advice = advise(workload_observed(ORDERS, recording.tables[ORDERS], found.seconds, "a log", None, 1000), CURRENT)
    assert "The table has these keys: keep them." in advice.verdict.sentences
    assert described(advice.best.layout, {}) == "PartitionKey = old PartitionKey, RowKey = old RowKey"
