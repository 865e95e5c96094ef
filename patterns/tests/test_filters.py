"""Filters are what the service understands, and match what it finds."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest
from azure.data.tables import EntityProperty, TableClient
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns.filters import Compare, CompareTime, Comparison, Filter, in_partition, in_range, literal_text
from lazulite_patterns.keys import KeyRange, Ticks

COMPARISONS: list[Comparison] = ["eq", "ne", "gt", "ge", "lt", "le"]
NUMBERS = [-(2**31), -1, 0, 7, 2**31 - 1]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (2**31 - 1, "2147483647"),
        (2**31, "2147483648L"),
        (-(2**63), "-9223372036854775808L"),
        (1.5, "1.5"),
        (EntityProperty(3, "Edm.Int64"), "3L"),
        (EntityProperty(1.5, "Edm.Double"), "1.5"),
        (EntityProperty("2014-07-31T18:30:00.0000007Z", "Edm.DateTime"), "datetime'2014-07-31T18:30:00.0000007Z'"),
        ("it's", "'it''s'"),
        (datetime(2014, 7, 31, 1, tzinfo=timezone(timedelta(hours=1))), "datetime'2014-07-31T00:00:00.000000Z'"),
        (Ticks(635424282000000007), "datetime'2014-07-31T18:30:00.0000007Z'"),
        (UUID(int=1), "guid'00000000-0000-0000-0000-000000000001'"),
        (b"\x00\xff", "X'00ff'"),
    ],
)
def test_literals(value: object, text: str) -> None:
    assert literal_text(value) == text


@pytest.mark.parametrize(
    ("value", "error"),
    [(None, TypeError), (2**63, ValueError), (datetime(2014, 1, 1), ValueError)],
)
def test_values_that_no_property_has_are_rejected(value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        literal_text(value)


def filters() -> st.SearchStrategy[Filter]:
    compare: st.SearchStrategy[Filter] = st.builds(
        Compare, st.just("N"), st.sampled_from(COMPARISONS), st.sampled_from(NUMBERS)
    )
    return st.recursive(
        compare,
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            inner.map(lambda a: ~a),
        ),
        max_leaves=6,
    )


@pytest.fixture(scope="module")
def numbers(connection_string: str) -> Iterator[TableClient]:
    client = TableClient.from_connection_string(connection_string, f"T{uuid4().hex}", retry_total=0)
    client.create_table()
    for index, number in enumerate(NUMBERS):
        client.create_entity({"PartitionKey": "p", "RowKey": str(index), "N": number})
    yield client
    client.delete_table()
    client.close()


@given(condition=filters())
def test_the_service_finds_what_a_filter_matches(numbers: TableClient, condition: Filter) -> None:
    found = {each["N"] for each in numbers.query_entities(condition.text())}
    assert found == {number for number in NUMBERS if condition.matches({"N": number})}


def test_keys() -> None:
    condition = in_partition("it's") & in_range("RowKey", KeyRange("a", "b"))
    assert condition.text() == "PartitionKey eq 'it''s' and RowKey ge 'a' and RowKey lt 'b'"
    assert condition.matches({"PartitionKey": "it's", "RowKey": "az"})
    assert not condition.matches({"PartitionKey": "it's", "RowKey": "b"})
    assert in_range("RowKey", KeyRange("a")).text() == "RowKey ge 'a'"
    assert not Compare("Absent", "ne", 1).matches({})
    assert Compare("N", "lt", EntityProperty(3, "Edm.Int64")).matches({"N": EntityProperty(2, "Edm.Int64")})
    assert Compare("T", "lt", datetime(2000, 1, 1, tzinfo=UTC)).matches({"T": datetime(1999, 1, 1, tzinfo=UTC)})


def test_times_are_compared_by_their_microsecond() -> None:
    """The service has seven digits, times of Python have six."""
    time = datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)
    texts = {
        "eq": "(A ge datetime'2026-01-02T03:04:05.123456Z' and A lt datetime'2026-01-02T03:04:05.123457Z')",
        "ne": "(A lt datetime'2026-01-02T03:04:05.123456Z' or A ge datetime'2026-01-02T03:04:05.123457Z')",
        "le": "A lt datetime'2026-01-02T03:04:05.123457Z'",
        "gt": "A ge datetime'2026-01-02T03:04:05.123457Z'",
        "lt": "A lt datetime'2026-01-02T03:04:05.123456Z'",
        "ge": "A ge datetime'2026-01-02T03:04:05.123456Z'",
    }
    assert {each: CompareTime("A", each, time).text() for each in texts} == texts  # type: ignore[arg-type] # names
    assert CompareTime("A", "eq", time).matches({"A": time})
    last = datetime.max.replace(tzinfo=UTC)
    assert CompareTime("A", "le", last).text() == "A le datetime'9999-12-31T23:59:59.999999Z'"
