"""Reference §10.6: `$top`."""

from collections.abc import Iterator

import pytest

from .client import Client
from .tables import Table, entity, new_table

COUNT = 10


@pytest.fixture(scope="module")
def ten(client: Client) -> Iterator[Table]:
    """Ten rows, half of which have an even V."""
    for table in new_table(client):
        table.add(*(entity("p", f"{row}", V=row % 2) for row in range(COUNT)))
        yield table


@pytest.mark.parametrize(
    ("top", "rows", "more"), [(1, 1, True), (9, 9, True), (10, 10, False), (11, 10, False), (1000, 10, False)]
)
def test_top_limits_the_page(ten: Table, top: int, rows: int, more: bool) -> None:
    page = ten.page(f"$top={top}")
    assert len(page.rows) == rows
    assert (page.next != "") is more


def test_counts_matches_only(ten: Table) -> None:
    page = ten.page("$top=3&$filter=V%20eq%201")
    assert [row["RowKey"] for row in page.rows] == ["1", "3", "5"]
    assert page.next
    rest = ten.page(f"$top=3&$filter=V%20eq%201&{page.next}")
    assert [row["RowKey"] for row in rest.rows] == ["7", "9"]


def test_beyond_1000_has_a_text(ten: Table) -> None:
    assert ten.query("$top=1001").rejection == (400, "InvalidInput", "One of the request inputs is not valid.")


@pytest.mark.parametrize("top", ["1001", "100000000000000000000", "-1", "-2", "abc", "1.5", "1e2", "0x10", "1,5"])
def test_invalid_top_is_rejected(ten: Table, top: str) -> None:
    assert ten.query(f"$top={top}").status == 400


@pytest.mark.unverified
def test_zero_is_an_empty_page(ten: Table) -> None:
    assert ten.page("$top=0").rows == []


@pytest.mark.unverified
@pytest.mark.parametrize("query", ["$top=", "$top=%203%20", "$top=%2B3"])
def test_odd_spellings_are_answered(ten: Table, query: str) -> None:
    assert ten.query(query).status in {200, 400}
