"""`Server-Timing` of queries: class, rows scanned, rows returned. Skipped where the server announces none, as Azure."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from .answers import Answer
from .batches import insert, run
from .client import Client
from .tables import Table, entity, new_table

METRIC = re.compile(r'(?P<name>[a-z]+)(?:;desc="(?P<desc>[^"]*)"|;dur=[0-9.]+)*')
PARTITIONS = 5
ROWS = 50


class Cost(NamedTuple):
    """What a query says that it cost."""

    query: str
    scanned: int
    returned: int


def cost(answer: Answer) -> Cost:
    """Read the header `Server-Timing`."""
    header = answer.expect(200).required("Server-Timing")
    found = {match["name"]: match["desc"] for match in METRIC.finditer(header) if match["desc"] is not None}
    return Cost(found["query"], int(found["scanned"]), int(found["returned"]))


@pytest.fixture(scope="module")
def grid(client: Client) -> Iterator[Table]:
    """Partitions p0 to p4 of fifty rows each; V is the row's number."""
    for table in new_table(client):
        for partition in range(PARTITIONS):
            run(client, *(insert(table, entity(f"p{partition}", f"{row:02}", V=row)) for row in range(ROWS)))
        if table.query().header("Server-Timing") is None:
            pytest.skip("the server announces no Server-Timing")
        yield table


CLASSES = [
    ("PartitionKey eq 'p1' and RowKey eq '07'", "point", 1, 1),
    ("RowKey eq '07' and PartitionKey eq 'p1'", "point", 1, 1),
    ("PartitionKey eq 'p1' and RowKey eq '07' and V eq 8", "point", 1, 0),
    ("PartitionKey eq 'p1' and RowKey eq 'none'", "point", 0, 0),
    ("PartitionKey eq 'p1' and RowKey ge '10' and RowKey lt '20'", "row range", 10, 10),
    ("PartitionKey eq 'p1' and RowKey gt '44'", "row range", 5, 5),
    ("PartitionKey eq 'p1' and RowKey ge '10' and RowKey lt '20' and V ge 15", "row range", 10, 5),
    ("PartitionKey eq 'p1'", "partition scan", 50, 50),
    ("PartitionKey eq 'p1' and V eq 7", "partition scan", 50, 1),
    ("PartitionKey ge 'p1' and PartitionKey lt 'p3'", "partition range", 100, 100),
    ("PartitionKey ge 'p1' and PartitionKey lt 'p3' and V eq 7", "partition range", 100, 2),
    ("V eq 7", "table scan", 250, 5),
    ("RowKey eq '07'", "table scan", 250, 5),
    ("", "table scan", 250, 250),
]


@pytest.mark.parametrize(("text", "name", "scanned", "returned"), CLASSES)
def test_class_and_rows(grid: Table, text: str, name: str, scanned: int, returned: int) -> None:
    came = cost(grid.filter(text) if text else grid.query())
    assert (came.query, came.returned) == (name, returned)
    assert came.scanned in {scanned, scanned + (returned == 0)}


def test_query_class_of_a_point_query(grid: Table) -> None:
    assert cost(grid.get("p1", "07")) == Cost("point", 1, 1)


UNIONS = [
    ("PartitionKey eq 'p1' or PartitionKey eq 'p3'", 100, 100),
    ("(PartitionKey eq 'p1' and RowKey eq '01') or (PartitionKey eq 'p3' and RowKey eq '03')", 2, 2),
    ("PartitionKey eq 'p1' and (RowKey eq '01' or RowKey eq '03')", 2, 2),
    ("(PartitionKey eq 'p1' or PartitionKey eq 'p3') and V eq 7", 100, 2),
]


@pytest.mark.parametrize(("text", "scanned", "returned"), UNIONS)
def test_or_over_keys_is_a_union_of_ranges(grid: Table, text: str, scanned: int, returned: int) -> None:
    """No row outside the ranges is read; the class says what the real service would do."""
    came = cost(grid.filter(text))
    assert (came.scanned, came.returned) == (scanned, returned)


def test_a_page_reads_little_more_than_it_returns(grid: Table) -> None:
    assert cost(grid.query("$top=10")).scanned <= 11


def test_contradictory_filter_reads_no_row(grid: Table) -> None:
    for text in ("false", "PartitionKey eq 'p1' and PartitionKey eq 'p2'", "PartitionKey eq 'nosuch'"):
        came = cost(grid.filter(text))
        assert (came.scanned, came.returned) == (0, 0)
