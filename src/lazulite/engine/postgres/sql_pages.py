"""The statements of scans: pages of rows by key, bounded in rows and bytes.

A page has the whole keys and the values of its rows. Behind the row that makes it as large as its bound, values are
null.

No output column has the name of a column of the table. A Citus coordinator writes a statement anew for its workers,
and a worker would take `ORDER BY partition_key` for the output column of that name: it would sort all rows of a shard
instead of reading the first ones by the index.

A page in one partition has no subquery, so a worker of Citus keeps its plan. A page over partitions has one: otherwise
a coordinator would collect all rows for the window function.
"""

_WHOLE_ROW = "COALESCE(long_row_key, row_key)"
_KEYS = f"COALESCE(long_partition_key, partition_key) AS whole_partition_key, {_WHOLE_ROW} AS whole_row_key"
_BOUNDED = (
    "CASE WHEN sum(octet_length(value)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) - octet_length(value) < $3"
    " THEN value END AS bounded"
)


def _in_partition(where: str, order: str) -> str:
    """Return the statement for at most $2 rows of a partition."""
    return (
        f"SELECT {_KEYS}, {_BOUNDED.format(order=order)} FROM lazulite.rows"
        f" WHERE space = $1 AND partition_key = $4 AND {where} ORDER BY {order} LIMIT $2"
    )


def _over_partitions(where: str, by_partition: str, by_row: str) -> str:
    """Return the statement for at most $2 rows of partitions."""
    return (
        f"SELECT whole_partition_key, whole_row_key, {_BOUNDED.format(order='by_partition, by_row')} FROM ("
        f"SELECT {_KEYS}, value, {by_partition} AS by_partition, {by_row} AS by_row FROM lazulite.rows"
        f" WHERE space = $1 AND {where} ORDER BY by_partition, by_row LIMIT $2"
        ") AS page ORDER BY by_partition, by_row"
    )


IN_PARTITION = _in_partition("row_key >= $5 AND row_key < $6", "row_key")
ROW_GROUP = _in_partition("row_key > $5 AND row_key < $6 AND long_row_key >= $7 AND long_row_key < $8", "long_row_key")
IN_SPACE = _over_partitions(
    "(partition_key, row_key) >= ($4, $5) AND (partition_key, row_key) < ($6, $7)", "partition_key", "row_key"
)
PARTITION_GROUP = _over_partitions(
    f"partition_key > $4 AND partition_key < $5 AND (long_partition_key, {_WHOLE_ROW}) >= ($6, $7)"
    f" AND (long_partition_key, {_WHOLE_ROW}) < ($8, $9)",
    "long_partition_key",
    _WHOLE_ROW,
)

KEYS_ONLY = {
    page: page.replace("octet_length(value)", "0").replace("THEN value", "THEN ''::bytea").replace(", value,", ",")
    for page in (IN_PARTITION, IN_SPACE, ROW_GROUP, PARTITION_GROUP)
}
"""By each statement, the one that returns empty values, which no bytes bound."""

KEYS_IN_SPACE = """
SELECT partition_key, row_key, octet_length(value) AS bytes FROM lazulite.rows
WHERE space = $1 AND (partition_key, row_key) >= ($3, $4) AND (partition_key, row_key) < ($5, $6)
ORDER BY partition_key, row_key LIMIT $2
"""
"""The index keys and the sizes of the first $2 rows. Each shard sends that many keys, and no values."""
VALUES_IN_SPACE = """
SELECT COALESCE(long_partition_key, partition_key) AS whole_partition_key,
    COALESCE(long_row_key, row_key) AS whole_row_key, value AS bounded FROM lazulite.rows
WHERE space = $1 AND (partition_key, row_key) >= ($3, $4) AND (partition_key, row_key) < ($5, $6)
ORDER BY partition_key, row_key LIMIT $2
"""
"""A page of at most $2 rows, whatever their bytes: its bounds were chosen by `KEYS_IN_SPACE`."""
