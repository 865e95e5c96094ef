"""Reference §8.1: Query Tables — filter, order, page, continuation."""

from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote

import pytest

from .client import NONE, Client
from .tables import Page, new_name, page

SUFFIXES = ["", "a", "b", "c", "d0", "d1"]


class Family(NamedTuple):
    """Tables whose names share a prefix."""

    client: Client
    prefix: str

    @property
    def names(self) -> list[str]:
        """Their names in order."""
        return [self.prefix + suffix for suffix in SUFFIXES]

    @property
    def bounds(self) -> str:
        """The filter that finds just them."""
        return f"TableName ge '{self.prefix}' and TableName lt '{self.prefix}{{'"

    def page(self, text: str, options: str = "") -> Page:
        """One page of a query of tables by filter."""
        query = f"$filter={quote(text, safe='')}" + (f"&{options}" if options else "")
        return page(self.client.send("GET", "/Tables", query, headers={"Accept": NONE}).expect(200))

    def find(self, text: str) -> list[str]:
        """The suffixes of the names that a filter finds."""
        return [row["TableName"].removeprefix(self.prefix) for row in self.page(text).rows]


@pytest.fixture(scope="module")
def family(client: Client) -> Iterator[Family]:
    """Six tables."""
    family = Family(client, new_name())
    for name in reversed(family.names):
        client.send("POST", "/Tables", body=f'{{"TableName":"{name}"}}').expect(201)
    yield family
    for name in family.names:
        client.send("DELETE", f"/Tables('{name}')").expect(204)


def test_tables_are_in_name_order(family: Family) -> None:
    assert [row["TableName"] for row in family.page(family.bounds).rows] == family.names


def test_order_ignores_case(client: Client, name: str, disposable: Callable[[str], str]) -> None:
    names = [disposable(name + suffix) for suffix in ("A", "b", "C", "d")]
    for each in reversed(names):
        client.send("POST", "/Tables", body=f'{{"TableName":"{each}"}}').expect(201)
    rows = page(client.send("GET", "/Tables", f"NextTableName={name}&$top=4").expect(200)).rows
    assert [row["TableName"] for row in rows] == names


FILTERS = [
    ("TableName eq '{p}b'", ["b"]),
    ("'{p}b' eq TableName", ["b"]),
    ("'{p}c' lt TableName and {bounds}", ["d0", "d1"]),
    ("TableName eq '{p}nosuch'", []),
    ("{bounds} and TableName ne '{p}'", ["a", "b", "c", "d0", "d1"]),
    ("TableName ge '{p}d0' and TableName lt '{p}e'", ["d0", "d1"]),
    ("TableName gt '{p}' and TableName le '{p}c'", ["a", "b", "c"]),
    ("{bounds} and not (TableName eq '{p}b')", ["", "a", "c", "d0", "d1"]),
    ("({bounds})and(TableName ge '{p}d')", ["d0", "d1"]),
    ("false", []),
]


@pytest.mark.parametrize(("text", "found"), FILTERS)
def test_table_filter(family: Family, text: str, found: list[str]) -> None:
    assert family.find(text.format(p=family.prefix, bounds=family.bounds)) == found


@pytest.mark.unverified
@pytest.mark.parametrize("text", ["TableName eq '{p}b' or TableName eq '{p}c'", "TableName eq '{p}b' and true"])
def test_equality_below_a_connective_is_answered(family: Family, text: str) -> None:
    """The service is said to take `TableName eq 'x'` below `and` and `or` for false."""
    assert set(family.find(text.format(p=family.prefix))) <= {"b", "c"}


@pytest.mark.parametrize(
    "text", ["TableName eq", "aaa bbb ccc", "TableName eq 'x", "(TableName eq 'x'", "TableName eq null"]
)
def test_a_malformed_filter(client: Client, text: str) -> None:
    answer = client.send("GET", "/Tables", f"$filter={quote(text, safe='')}")
    assert answer.code == (400, "InvalidInput")


@pytest.mark.parametrize("query", ["$filter=", "$select=", "$select=&$filter=", "$select=TableName", "unknown=1"])
def test_empty_and_harmless_options(client: Client, query: str) -> None:
    client.send("GET", "/Tables", query).expect(200)


@pytest.mark.parametrize("top", [1, 2, 4, 5])
def test_pages_of_tables(family: Family, top: int) -> None:
    names: list[str] = []
    following = f"$top={top}"
    for _ in range(len(SUFFIXES) + 1):
        rows, token = family.page(family.bounds, following)
        assert len(rows) <= top
        names += [row["TableName"] for row in rows]
        if not token:
            break
        assert token.startswith("NextTableName=")
        following = f"$top={top}&{token}"
    assert names == family.names


def test_exactly_at_the_end_there_is_no_continuation(family: Family) -> None:
    assert family.page(family.bounds, f"$top={len(SUFFIXES)}").next == ""
    assert family.page(family.bounds, "$top=1000").next == ""


def test_the_token_survives_deletion_of_the_table_that_it_names(client: Client) -> None:
    family = Family(client, new_name())
    for name in family.names:
        client.send("POST", "/Tables", body=f'{{"TableName":"{name}"}}').expect(201)
    token = family.page(family.bounds, "$top=2").next
    client.send("DELETE", f"/Tables('{family.names[2]}')").expect(204)
    rest = family.page(family.bounds, token).rows
    assert [row["TableName"] for row in rest] == family.names[3:]
    for name in family.names[:2] + family.names[3:]:
        client.send("DELETE", f"/Tables('{name}')").expect(204)


def test_a_raw_name_is_accepted_for_a_token(family: Family) -> None:
    name = family.names[3]
    rows = family.page(family.bounds, f"NextTableName={name}").rows
    assert [row["TableName"] for row in rows] == family.names[3:]


@pytest.mark.parametrize("top", ["1001", "-2", "abc", "1.5"])
def test_top_out_of_range(client: Client, top: str) -> None:
    assert client.send("GET", "/Tables", f"$top={top}").status == 400


@pytest.mark.unverified
def test_top_of_zero_is_an_empty_page(family: Family) -> None:
    assert family.page(family.bounds, "$top=0").rows == []
