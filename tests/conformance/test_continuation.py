"""Reference §10.7: pages and continuation tokens."""

import re
from collections.abc import Iterator

import pytest

from .batches import insert, run
from .client import Client
from .tables import Page, Table, entity, new_table

COUNT = 2_345
PAGE_MAX = 1_000
TOKEN = re.compile(r"[\x21-\x7e]+")


@pytest.fixture(scope="module")
def many(client: Client) -> Iterator[Table]:
    """More than two pages of rows, in partitions of a hundred."""
    for table in new_table(client):
        for start in range(0, COUNT, 100):
            rows = range(start, min(start + 100, COUNT))
            parts = run(client, *(insert(table, entity(f"p{start // 100:02}", f"{row:05}", V=row)) for row in rows))
            assert all(part.status == 204 for part in parts)
        yield table


def pages(table: Table, query: str = "", limit: int = 3_000) -> list[Page]:
    """All pages of a query."""
    found = [table.page(query)]
    while found[-1].next:
        assert len(found) < limit
        found.append(table.page(f"{query}&{found[-1].next}" if query else found[-1].next))
    return found


def row_keys(found: list[Page]) -> list[str]:
    """The row keys on pages."""
    return [row["RowKey"] for page in found for row in page.rows]


def test_a_page_has_at_most_1000_rows(many: Table) -> None:
    found = pages(many)
    assert all(len(page.rows) <= PAGE_MAX for page in found)
    assert row_keys(found) == [f"{row:05}" for row in range(COUNT)]


@pytest.mark.parametrize("top", [100, 333, 999, 1000])
def test_top_limits_each_page(many: Table, top: int) -> None:
    found = pages(many, f"$top={top}")
    assert all(len(page.rows) <= top for page in found)
    assert row_keys(found) == [f"{row:05}" for row in range(COUNT)]


@pytest.mark.parametrize(
    ("text", "first", "count"),
    [
        ("PartitionKey%20ge%20'p05'", 500, COUNT - 500),
        ("V%20ge%201200", 1200, COUNT - 1200),
        ("PartitionKey%20ge%20'p03'%20and%20PartitionKey%20lt%20'p15'", 300, 1200),
        ("V%20eq%202300", 2300, 1),
        ("false", 0, 0),
    ],
)
def test_pages_of_a_filter(many: Table, text: str, first: int, count: int) -> None:
    found = pages(many, f"$filter={text}")
    assert row_keys(found) == [f"{row:05}" for row in range(first, first + count)]


def test_exactly_a_page(many: Table) -> None:
    found = many.page("$filter=PartitionKey%20lt%20'p10'")
    assert len(found.rows) == PAGE_MAX
    assert found.next == "" or pages(many, f"$filter=PartitionKey%20lt%20'p10'&{found.next}")[0].rows == []


def test_exactly_at_the_end_of_the_table(table: Table) -> None:
    for start in range(0, PAGE_MAX, 100):
        run(table.client, *(insert(table, entity("p", f"{row:04}")) for row in range(start, start + 100)))
    assert (len(table.page().rows), table.page().next) == (PAGE_MAX, "")
    table.add(entity("p", "9999"))
    assert (len(table.page().rows), table.page().next != "") == (PAGE_MAX, True)


def test_a_point_like_filter_needs_no_token(many: Table) -> None:
    page = many.page("$filter=PartitionKey%20eq%20'p03'%20and%20RowKey%20eq%20'00333'")
    assert (len(page.rows), page.next) == (1, "")


def test_tokens_are_header_safe(table: Table) -> None:
    keys = ["a", "é", "日本", "😀", "x y", "100%", "a+b&c", "\u00a0", "~~~???".replace("?", "!"), "\uffff" * 5]
    table.add(*(entity(key, key) for key in keys))
    found = pages(table, "$top=1")
    assert {row["RowKey"] for page in found for row in page.rows} == set(keys)
    assert [len(page.rows) for page in found] == [1] * len(keys)
    answer = table.query("$top=1")
    for name in ("NextPartitionKey", "NextRowKey"):
        assert TOKEN.fullmatch(answer.required(f"x-ms-continuation-{name}"))


def test_tokens_are_of_the_recorded_form(table: Table) -> None:
    """`1!{length}!{base64 with = as -}` of the first row of the next page."""
    table.add(entity("Jones", "a"), entity("Smith", "Ben1898"))
    answer = table.query("$top=1").expect(200)
    assert answer.header("x-ms-continuation-NextPartitionKey") == "1!8!U21pdGg-"
    assert answer.header("x-ms-continuation-NextRowKey") == "1!12!QmVuMTg5OA--"


def test_the_row_that_a_token_names_may_be_deleted(table: Table) -> None:
    table.add(*(entity("p", f"{row}") for row in range(6)))
    token = table.page("$top=3").next
    for row in ("3", "4"):
        table.write("DELETE", table.at("p", row), If_Match="*").expect(204)
    assert [row["RowKey"] for row in table.page(token).rows] == ["5"]
    table.write("DELETE", table.at("p", "5"), If_Match="*").expect(204)
    assert table.page(token) == ([], "")


def test_a_row_put_where_a_token_points_is_seen(table: Table) -> None:
    table.add(*(entity("p", f"{row}") for row in range(4)))
    token = table.page("$top=2").next
    table.add(entity("p", "25"), entity("p", "0a"))
    assert [row["RowKey"] for row in table.page(token).rows] == ["2", "25", "3"]


@pytest.mark.parametrize(
    ("token", "first"),
    [
        ("NextPartitionKey=p02", 200),
        ("NextPartitionKey=p02&NextRowKey=1!0!", 200),
        ("NextPartitionKey=p02&NextRowKey=00250", 250),
        ("NextPartitionKey=1!4!cDAy&NextRowKey=1!8!MDAyNTA-", 250),
        ("NextPartitionKey=1%214%21cDAy&NextRowKey=1%218%21MDAyNTA-", 250),
        ("NextPartitionKey=1!4!cDAy", 200),
        ("NextPartitionKey=p0", 0),
        ("NextPartitionKey=p02&NextRowKey=zzz", 300),
    ],
)
def test_tokens_may_be_partial_or_raw(many: Table, token: str, first: int) -> None:
    rows = many.page(f"$top=5&{token}").rows
    assert [row["RowKey"] for row in rows] == [f"{row:05}" for row in range(first, first + 5)]


@pytest.mark.parametrize("token", ["NextPartitionKey=1!4!cDAy&NextRowKey=", "NextRowKey&NextPartitionKey=p02"])
def test_an_empty_row_is_no_token(many: Table, token: str) -> None:
    """§25: a live body; many reported it."""
    assert many.query(token).code == (400, "InvalidInput")


def test_a_token_does_not_widen_the_filter(many: Table) -> None:
    query = "$filter=PartitionKey%20eq%20'p05'&NextPartitionKey=p02&NextRowKey=00250"
    assert row_keys(pages(many, query)) == [f"{row:05}" for row in range(500, 600)]
    assert pages(many, "$filter=PartitionKey%20eq%20'p05'&NextPartitionKey=p07") == [([], "")]


@pytest.mark.unverified
@pytest.mark.parametrize("token", ["1!", "1!8!***", "1!4!U21pdGg-", "1!x!U21pdGg-", "2!8!U21pdGg-", "!!", "1!4!/w--"])
def test_malformed_tokens_are_answered(many: Table, token: str) -> None:
    answer = many.query(f"NextPartitionKey={token}&NextRowKey={token}")
    assert answer.status in {200, 400}
    if answer.status == 400:
        assert answer.rejection.code in {"InvalidQueryParameterValue", "InvalidInput"}


def test_pages_of_a_union_of_ranges(many: Table) -> None:
    query = (
        "$filter=PartitionKey%20eq%20'p20'%20or%20PartitionKey%20eq%20'p03'%20or%20PartitionKey%20eq%20'p11'&$top=70"
    )
    expected = [row for start in (300, 1100, 2000) for row in range(start, start + 100)]
    assert row_keys(pages(many, query)) == [f"{row:05}" for row in expected]


def test_selection_pages_too(many: Table) -> None:
    found = pages(many, "$select=V")
    assert [row["V"] for page in found for row in page.rows] == list(range(COUNT))
