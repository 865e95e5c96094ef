"""The statements of which scripts consist, prepared in each session.

Each names one partition, so a Citus worker keeps its plan, and a script costs little more than its rows. Other
statements of Citus are planned anew each time. A check that fails divides by zero, or violates a primary key.

Many rows are one statement, whose values are one argument: to read a hundred literals takes longer than to write the
rows. Keys are hexadecimal digits there.
"""

from lazulite.engine.postgres.sql_statements import COLUMNS, ON_CONFLICT_REPLACE

_ADVANCE = """
INSERT INTO lazulite.partitions AS known (space, partition_key, stamp) VALUES ($1, $2, $3)
ON CONFLICT (space, partition_key) DO UPDATE SET stamp = excluded.stamp + 0 % CAST(known.stamp {condition} $4 AS int)
"""
_ROW = "lazulite.rows WHERE space = $1 AND partition_key = $2 AND row_key = $3"
_INSERT = f"INSERT INTO lazulite.rows ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)"
_INSERT_MANY = f"""
INSERT INTO lazulite.rows ({COLUMNS})
SELECT $1, $2, decode(row_hex, 'hex'), row_stamp, substr($5, at, size), $8, decode(long_hex, 'hex')
FROM unnest($3, $4, $6, $7, $9) AS given (row_hex, row_stamp, at, size, long_hex)
"""
_ONE, _MANY = (
    "bigint, bytea, bytea, bigint, bytea, bytea, bytea",
    "bigint, bytea, text[], bigint[], bytea, int[], int[], bytea, text[]",
)

STATEMENTS = {
    "begin_version": ("bigint, bytea, bigint", "INSERT INTO lazulite.partitions VALUES ($1, $2, $3)"),
    "advance_from": ("bigint, bytea, bigint, bigint", _ADVANCE.format(condition="=")),
    "advance_below": ("bigint, bytea, bigint, bigint", _ADVANCE.format(condition="<")),
    "expect_row": ("bigint, bytea, bytea, bigint", f"SELECT 1 / count(*) FROM {_ROW} AND stamp = COALESCE($4, stamp)"),
    "expect_beginning": (
        "bigint, bytea, bytea, bytea",
        f"SELECT 1 / count(*) FROM {_ROW} AND substr(value, 1, octet_length($4)) = $4",
    ),
    "delete_row": ("bigint, bytea, bytea", f"DELETE FROM {_ROW}"),
    "insert_row": (_ONE, _INSERT),
    "replace_row": (_ONE, _INSERT + ON_CONFLICT_REPLACE),
    "insert_rows": (_MANY, _INSERT_MANY),
    "replace_rows": (_MANY, _INSERT_MANY + ON_CONFLICT_REPLACE),
}
"""By name: the types of the arguments, and the statement.

    begin_version      gives a partition its first version, and fails if it has one
    advance_from       locks a version row and sets it, and fails unless it had the given version
    advance_below      likewise, unless it had a version below the given one
    expect_row         fails unless there is a row, with the given timestamp if it is one
    expect_beginning   fails unless there is a row whose value begins so
"""

PREPARE = ";".join(f"PREPARE {name} ({types}) AS {statement}" for name, (types, statement) in STATEMENTS.items())
