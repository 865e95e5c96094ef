"""The statements of scans: pages of rows by key, bounded in rows and bytes.

No output column has the name of a column of the table. A Citus coordinator writes a statement anew for its workers,
and a worker would take `ORDER BY partition_key` for the output column of that name: it would sort all rows of a shard
instead of reading the first ones by the index.
"""

_PAGE = """
SELECT whole_partition_key, whole_row_key, value, before FROM (
    SELECT whole_partition_key, whole_row_key, value, by_partition, by_row,
        sum(octet_length(value)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) - octet_length(value) AS before
    FROM (
        SELECT COALESCE(long_partition_key, partition_key) AS whole_partition_key,
            COALESCE(long_row_key, row_key) AS whole_row_key, value, {by_partition} AS by_partition, {by_row} AS by_row
        FROM lazulite.rows WHERE space = $1 AND {where} ORDER BY {order} LIMIT $2
    ) AS page
) AS sized WHERE before < $3 ORDER BY {order}
"""
"""A page of at most $2 rows; it ends with the one that makes it $3 bytes large."""
_BOTH = "by_partition, by_row"
_WHOLE_ROW = "COALESCE(long_row_key, row_key)"

IN_PARTITION = _PAGE.format(
    by_partition="partition_key",
    by_row="row_key",
    order="by_row",
    where="partition_key = $4 AND row_key >= $5 AND row_key < $6",
)
IN_SPACE = _PAGE.format(
    by_partition="partition_key",
    by_row="row_key",
    order=_BOTH,
    where="(partition_key, row_key) >= ($4, $5) AND (partition_key, row_key) < ($6, $7)",
)
ROW_GROUP = _PAGE.format(
    by_partition="partition_key",
    by_row="long_row_key",
    order="by_row",
    where="partition_key = $4 AND row_key > $5 AND row_key < $6 AND long_row_key >= $7 AND long_row_key < $8",
)
PARTITION_GROUP = _PAGE.format(
    by_partition="long_partition_key",
    by_row=_WHOLE_ROW,
    order=_BOTH,
    where=f"partition_key > $4 AND partition_key < $5 AND (long_partition_key, {_WHOLE_ROW}) >= ($6, $7)"
    f" AND (long_partition_key, {_WHOLE_ROW}) < ($8, $9)",
)

KEYS_ONLY = {
    page: page.replace("AS whole_row_key, value,", "AS whole_row_key, ''::bytea AS value,")
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
    COALESCE(long_row_key, row_key) AS whole_row_key, value, 0 AS before FROM lazulite.rows
WHERE space = $1 AND (partition_key, row_key) >= ($3, $4) AND (partition_key, row_key) < ($5, $6)
ORDER BY partition_key, row_key LIMIT $2
"""
"""A page of at most $2 rows, whatever their bytes: its bounds were chosen by `KEYS_IN_SPACE`."""
