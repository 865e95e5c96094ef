"""Reference §14.4, §23: the key range of a table SAS is one range of (PartitionKey, RowKey) pairs."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from .answers import Rejection
from .client import Client
from .sas import Fields, table_sas
from .signing import anonymous
from .tables import Table, entity, new_table, page

OUTSIDE = Rejection(403, "AuthorizationFailure", "This request is not authorized to perform this operation.")
GRID = [f"{partition}{row}" for partition in "abcd" for row in "1234"]


@pytest.fixture(scope="module")
def grid(client: Client) -> Iterator[Table]:
    """Partitions a to d with rows 1 to 4 each."""
    for table in new_table(client):
        table.add(*(entity(pair[0], pair[1]) for pair in GRID))
        yield table


class Range(NamedTuple):
    """The fields of a range and the pairs inside."""

    fields: Fields
    inside: list[str]


RANGES = {
    "from a partition": Range({"spk": "c"}, GRID[8:]),
    "from a pair": Range({"spk": "b", "srk": "3"}, GRID[6:]),
    "to a partition": Range({"epk": "b"}, GRID[:8]),
    "to a pair": Range({"epk": "b", "erk": "3"}, GRID[:7]),
    "partitions": Range({"spk": "b", "epk": "c"}, GRID[4:12]),
    "one partition": Range({"spk": "b", "epk": "b"}, GRID[4:8]),
    "pairs": Range({"spk": "a", "srk": "3", "epk": "c", "erk": "2"}, GRID[2:10]),
    "rows of a partition": Range({"spk": "b", "srk": "2", "epk": "b", "erk": "3"}, GRID[5:7]),
    "one row": Range({"spk": "b", "srk": "2", "epk": "b", "erk": "2"}, GRID[5:6]),
    "between": Range({"spk": "b", "srk": "25", "epk": "b", "erk": "35"}, GRID[6:7]),
    "nothing": Range({"spk": "c", "epk": "b"}, []),
    "from a partition, to a pair": Range({"spk": "b", "epk": "c", "erk": "1"}, GRID[4:9]),
}


def pairs(rows: list[dict[str, str]]) -> list[str]:
    """Rows by their keys."""
    return [row["PartitionKey"] + row["RowKey"] for row in rows]


@pytest.mark.parametrize("case", RANGES.values(), ids=RANGES)
def test_queries_return_only_what_is_inside(grid: Table, case: Range) -> None:
    sas = table_sas(grid.client.endpoint, grid.name, case.fields)
    answer = grid.client.send("GET", f"{grid.path}()", sas, signer=anonymous).expect(200)
    assert pairs(answer.json()["value"]) == case.inside
    query = f"$filter=RowKey%20ge%20'2'&{sas}"
    filtered = grid.client.send("GET", grid.path, query, signer=anonymous).expect(200)
    assert pairs(filtered.json()["value"]) == [pair for pair in case.inside if pair[1] >= "2"]


@pytest.mark.parametrize("case", RANGES.values(), ids=RANGES)
def test_points_outside_are_rejected(grid: Table, case: Range) -> None:
    sas = table_sas(grid.client.endpoint, grid.name, case.fields)
    for pair in GRID:
        inside = pair in case.inside
        address = grid.at(*pair)
        read = grid.client.send("GET", address, sas, signer=anonymous)
        write = grid.client.send("MERGE", address, sas, body="{}", signer=anonymous)
        update = grid.client.send("PUT", address, sas, headers={"If-Match": "*"}, body="{}", signer=anonymous)
        assert (read.status, write.status, update.status) == ((200, 204, 204) if inside else (403, 403, 403)), pair
        if not inside:
            assert {read.rejection, write.rejection, update.rejection} == {OUTSIDE}


def test_inserts_and_deletes_outside_are_rejected(table: Table) -> None:
    table.add(entity("a", "1"))
    sas = table_sas(table.client.endpoint, table.name, {"spk": "b", "epk": "b"})
    text = '{"PartitionKey":"a","RowKey":"2"}'
    assert table.client.send("POST", table.path, sas, body=text, signer=anonymous).rejection == OUTSIDE
    headers = {"If-Match": "*"}
    assert table.client.send("DELETE", table.at("a", "1"), sas, headers=headers, signer=anonymous).rejection == OUTSIDE
    table.client.send("POST", table.path, sas, body=text.replace('"a"', '"b"'), signer=anonymous).expect(201)
    assert pairs(table.page().rows) == ["a1", "b2"]


def test_pages_stay_inside(grid: Table) -> None:
    sas = table_sas(grid.client.endpoint, grid.name, {"spk": "a", "srk": "3", "epk": "c", "erk": "2"})
    found: list[str] = []
    token = ""
    for _ in range(10):
        answer = grid.client.send("GET", grid.path, f"$top=3&{sas}{token}", signer=anonymous).expect(200)
        rows, following = page(answer)
        found += pairs(rows)
        if not following:
            break
        token = f"&{following}"
    assert found == GRID[2:10]


def test_a_token_from_outside_does_not_lead_outside(grid: Table) -> None:
    sas = table_sas(grid.client.endpoint, grid.name, {"spk": "b", "epk": "b"})
    for token in ("NextPartitionKey=a&NextRowKey=1", "NextPartitionKey=a"):
        answer = grid.client.send("GET", grid.path, f"{sas}&{token}", signer=anonymous).expect(200)
        assert pairs(answer.json()["value"]) == GRID[4:8]
    answer = grid.client.send("GET", grid.path, f"{sas}&NextPartitionKey=d", signer=anonymous).expect(200)
    assert answer.json()["value"] == []


def test_a_range_cannot_be_changed(grid: Table) -> None:
    sas = table_sas(grid.client.endpoint, grid.name, {"spk": "b", "epk": "b"})
    for changed in (sas.replace("epk=b", "epk=d"), sas.replace("spk=b&", ""), sas + "&erk=9"):
        answer = grid.client.send("GET", grid.path, changed, signer=anonymous)
        assert answer.code == (403, "AuthenticationFailed")


@pytest.mark.parametrize("fields", [{"srk": "1"}, {"erk": "1"}, {"spk": "a", "erk": "1"}, {"epk": "a", "srk": "1"}])
@pytest.mark.unverified
def test_a_row_bound_needs_its_partition_bound(grid: Table, fields: Fields) -> None:
    sas = table_sas(grid.client.endpoint, grid.name, fields)
    answer = grid.client.send("GET", grid.path, sas, signer=anonymous)
    assert answer.status in {400, 403}


def test_empty_keys_are_bounds(table: Table) -> None:
    table.add(entity("", ""), entity("", "1"), entity("a", ""), entity("a", "1"))
    sas = table_sas(table.client.endpoint, table.name, {"spk": "a", "srk": "1"})
    answer = table.client.send("GET", table.path, sas, signer=anonymous).expect(200)
    assert pairs(answer.json()["value"]) == ["a1"]


def test_bounds_with_odd_characters(table: Table) -> None:
    table.add(entity("é'&=+%", "1"), entity("é'&=+%", "2"), entity("z", "1"))
    sas = table_sas(table.client.endpoint, table.name, {"spk": "é'&=+%", "srk": "2", "epk": "é'&=+%"})
    answer = table.client.send("GET", table.path, sas, signer=anonymous).expect(200)
    assert pairs(answer.json()["value"]) == ["é'&=+%2"]
