"""Queries and paging through the Python SDK."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import EdmType, EntityProperty, TableClient, TableServiceClient
from tests.server_process import Account

from .failures import rejected

START = datetime(2024, 1, 1, tzinfo=UTC)
BIG = 2**40


@pytest.fixture(scope="module")
def filled(account: Account) -> Iterator[TableClient]:
    """Two partitions of five rows; every second row has a Note, of varying kinds of property."""
    with TableServiceClient.from_connection_string(account.connection_string, retry_total=0) as service:
        table = service.create_table(f"t{uuid4().hex}")
        for partition in "ab":
            table.submit_transaction([("create", row(partition, number)) for number in range(5)])
        yield table
        table.delete_table()


def row(partition: str, number: int) -> dict[str, Any]:
    note = {"Note": f"it's {number}"} if number % 2 else {}
    return note | {
        "PartitionKey": partition,
        "RowKey": f"r{number}",
        "N": number,
        "Big": EntityProperty(BIG + number, EdmType.INT64),
        "Half": number / 2,
        "At": START + timedelta(days=number),
        "Id": UUID(int=number),
        "Raw": bytes([number]),
        "Flag": number > 2,
    }


@pytest.mark.parametrize(
    ("query", "parameters", "numbers"),
    [
        # As parameters, the SDK spells 0 and 1 as booleans: no test uses them so.
        ("RowKey eq @k", {"k": "r3"}, [3]),
        ("N gt 2", None, [3, 4]),
        ("N ge @low and N lt @high", {"low": 2, "high": 4}, [2, 3]),
        ("N ne @n", {"n": 2}, [0, 1, 3, 4]),
        ("Big eq @n", {"n": BIG + 2}, [2]),
        ("Half le @n", {"n": 0.5}, [0, 1]),
        ("At eq @t", {"t": START + timedelta(days=4)}, [4]),
        ("At lt @t", {"t": START + timedelta(days=2)}, [0, 1]),
        ("Id eq @id", {"id": UUID(int=3)}, [3]),
        ("Raw eq @raw", {"raw": b"\x01"}, [1]),
        ("Flag eq @flag", {"flag": True}, [3, 4]),
        ("Flag", None, [3, 4]),
        ("not Flag", None, [0, 1, 2]),
        ("Note eq @note", {"note": "it's 1"}, [1]),
        ("Note ne @note", {"note": "it's 1"}, [3]),
        ("not (Note eq 'it''s 1')", None, [0, 2, 3, 4]),
        ("N eq 0 or (N eq 1 or RowKey eq 'r4')", None, [0, 1, 4]),
        ("3 lt N", None, [4]),
        ("N eq '3'", None, []),
        ("Absent eq 1", None, []),
        ("true", None, [0, 1, 2, 3, 4]),
        ("false", None, []),
        ("Timestamp gt @t", {"t": START}, [0, 1, 2, 3, 4]),
    ],
)
def test_filters(filled: TableClient, query: str, parameters: dict[str, Any] | None, numbers: list[int]) -> None:
    both = f"PartitionKey eq 'a' and ({query})" if parameters is None else f"PartitionKey eq 'a' and {query}"
    assert [e["N"] for e in filled.query_entities(both, parameters=parameters)] == numbers
    everywhere = [(e["PartitionKey"], e["N"]) for e in filled.query_entities(query, parameters=parameters)]
    assert everywhere == [(partition, number) for partition in "ab" for number in numbers]


def test_listing_is_in_key_order(filled: TableClient) -> None:
    found = [(e["PartitionKey"], e["RowKey"]) for e in filled.list_entities()]
    assert found == [(partition, f"r{number}") for partition in "ab" for number in range(5)]


def test_selecting(filled: TableClient) -> None:
    for select in (["RowKey", "Note"], "RowKey,Note"):
        found = [dict(e) for e in filled.query_entities("PartitionKey eq 'a' and N lt 2", select=select)]
        assert found == [{"RowKey": "r0", "Note": None}, {"RowKey": "r1", "Note": "it's 1"}]
    assert [dict(e) for e in filled.list_entities(select=["N"])] == [{"N": n} for _ in "ab" for n in range(5)]


def test_a_missing_table_has_nothing_to_query(service: TableServiceClient) -> None:
    with rejected(ResourceNotFoundError):
        list(service.get_table_client("sdkAbsent").list_entities())


@pytest.mark.parametrize("query", ["aaa bbb ccc", "N eq", "N eq null", "(N eq 1", "N eq 'open"])
def test_malformed_filters_are_rejected(filled: TableClient, query: str) -> None:
    with rejected(400):
        list(filled.query_entities(query))


def test_functions_are_not_implemented(filled: TableClient) -> None:
    with rejected(501):
        list(filled.query_entities("startswith(RowKey,'r')"))


def test_pages_resume_from_their_token(filled: TableClient) -> None:
    found: list[tuple[str, str]] = []
    sizes: list[int] = []
    token: Any = None
    for _ in range(4):
        pages: Any = filled.query_entities("N ge 0", results_per_page=3).by_page(token)
        page = [(e["PartitionKey"], e["RowKey"]) for e in next(pages)]
        found += page
        sizes.append(len(page))
        token = pages.continuation_token
    assert found == [(partition, f"r{number}") for partition in "ab" for number in range(5)]
    assert (sizes, token) == ([3, 3, 3, 1], None)


def test_no_token_after_exactly_the_last_row(filled: TableClient) -> None:
    pages: Any = filled.list_entities(results_per_page=10).by_page()
    assert len(list(next(pages))) == 10
    assert pages.continuation_token is None


def test_a_page_larger_than_allowed_is_rejected(filled: TableClient) -> None:
    with rejected(400):
        list(filled.list_entities(results_per_page=1001))


def test_a_token_outlives_the_row_that_it_names(table: TableClient) -> None:
    for number in range(4):
        table.create_entity({"PartitionKey": "p", "RowKey": str(number)})
    pages: Any = table.list_entities(results_per_page=2).by_page()
    next(pages)
    token = pages.continuation_token
    table.delete_entity("p", "2")
    rest: Any = table.list_entities(results_per_page=2).by_page(token)
    assert [e["RowKey"] for e in next(rest)] == ["3"]
    assert rest.continuation_token is None


def test_more_than_a_page_of_entities(table: TableClient) -> None:
    total = 2_345
    for start in range(0, total, 100):
        numbers = range(start, min(start + 100, total))
        table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": f"{n:05}", "N": n}) for n in numbers])
    assert [e["N"] for e in table.list_entities()] == list(range(total))
    assert [len(list(page)) for page in table.list_entities().by_page()] == [1000, 1000, 345]
    odd = [e["N"] for e in table.query_entities("PartitionKey eq 'p' and N ge 1500", results_per_page=400)]
    assert odd == list(range(1500, total))
