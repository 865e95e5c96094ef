import pytest

from lazulite.table.query.filter import parse, query_class


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PartitionKey eq 'p' and RowKey eq 'r'", "point"),
        ("RowKey eq 'r' and (A eq 1 and 'p' eq PartitionKey)", "point"),
        ("PartitionKey eq 'p' and RowKey ge 'a'", "row range"),
        ("PartitionKey eq 'p' and 'a' lt RowKey and RowKey lt 'b' and A eq 1", "row range"),
        ("PartitionKey eq 'p'", "partition scan"),
        ("PartitionKey eq 'p' and A eq 1", "partition scan"),
        ("PartitionKey eq 'p' and RowKey ne 'r'", "partition scan"),
        ("PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'b')", "partition scan"),
        ("PartitionKey eq 'p' and not (RowKey lt 'a')", "partition scan"),
        ("PartitionKey eq 'p' and RowKey eq 5", "partition scan"),
        ("PartitionKey ge 'a' and PartitionKey lt 'b'", "partition range"),
        ("PartitionKey gt 'a' and RowKey eq 'r'", "partition range"),
        ("PartitionKey eq 'a' or PartitionKey eq 'b'", "table scan"),
        ("(PartitionKey eq 'p' and RowKey eq 'r') or (PartitionKey eq 'p' and RowKey eq 's')", "table scan"),
        ("not (PartitionKey ne 'a')", "table scan"),
        ("PartitionKey ne 'a'", "table scan"),
        ("PartitionKey eq 5", "table scan"),
        ("RowKey eq 'r'", "table scan"),
        ("partitionkey eq 'p'", "table scan"),
        ("A eq 1", "table scan"),
        ("true", "table scan"),
    ],
)
def test_query_class(text: str, expected: str) -> None:
    assert query_class(parse(text)) == expected


def test_no_filter_is_a_table_scan() -> None:
    assert query_class(None) == "table scan"
