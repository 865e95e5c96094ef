"""The statements that run again and again, in SQL.

A *head* is a partition's row in `partitions`. Each commit that writes sets its head to the commit's stamp, which is
greater; the lock on the head, held until the commit is durable, puts the commits of a partition in one order. So a
partition whose head is what it was has not changed.

Heads and rows are changed by one statement with `WITH`: it is a transaction by itself, and its rows are written only
for heads that were. `read committed` is enough: a head that another commit holds is waited for and then judged as it is
by then, and where it is judged to be the one that was read, nothing else of the partition can have changed since.
"""

GET = """
SELECT row_at.value FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])
    WITH ORDINALITY AS asked (space, partition_key, row_key, place)
LEFT JOIN lazulite.rows AS row_at USING (space, partition_key, row_key)
ORDER BY place
"""
"""The values of many rows, in the order asked."""

GET_ONE = "SELECT value FROM lazulite.rows WHERE space = $1 AND partition_key = $2 AND row_key = $3"

READ = """
SELECT place, NULL::bytea AS row_key, NULL::bytea AS value, stamp
FROM unnest($1::bigint[], $2::bytea[]) WITH ORDINALITY AS asked (space, partition_key, place)
JOIN lazulite.partitions USING (space, partition_key)
UNION ALL
SELECT place, row_key, value, 0
FROM unnest($3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[]) AS asked (place, space, partition_key, row_key)
JOIN lazulite.rows USING (space, partition_key, row_key)
"""
"""The heads of some partitions, and some of their rows; `place` says which partition, from 1 on."""

READ_ONE = """
SELECT NULL::bytea AS row_key, NULL::bytea AS value, stamp FROM lazulite.partitions
    WHERE space = $1 AND partition_key = $2
UNION ALL
SELECT found.row_key, found.value, 0 FROM unnest($3::bytea[]) AS asked (row_key) CROSS JOIN LATERAL (
    SELECT row_key, value FROM lazulite.rows
    WHERE space = $1 AND partition_key = $2 AND row_key = asked.row_key LIMIT 1
) AS found
"""
"""The same of one partition. The limit has each row looked up by its whole key: otherwise a worker of Citus, which
`SESSION` does not reach, reads the whole partition once its statistics say that the partition is small."""

LOCK = "SELECT stamp FROM lazulite.partitions WHERE space = $1 AND partition_key = $2 FOR UPDATE"
"""Waits until nobody else writes to a partition, and keeps others from it until the transaction ends."""

COLUMNS = "space, partition_key, row_key, stamp, value, long_partition_key, long_row_key"
ON_CONFLICT_REPLACE = """
ON CONFLICT (space, partition_key, row_key) DO UPDATE SET stamp = excluded.stamp, value = excluded.value
"""

_SINGLE = """
WITH head AS (
    INSERT INTO lazulite.partitions AS known (space, partition_key, stamp)
    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[])
    ON CONFLICT (space, partition_key) DO UPDATE SET stamp = excluded.stamp WHERE known.stamp < $4
    RETURNING space, partition_key, stamp AS head_stamp
), told AS (
    SELECT * FROM unnest($5::bigint[], $6::bytea[], $7::bytea[], $8::bigint[], $9::bytea[], $10::bytea[], $11::bytea[],
        $12::bigint[]) AS each (space, partition_key, row_key, stamp, value, long_partition_key, long_row_key, expected)
    JOIN head USING (space, partition_key)
), written AS (
    {change}
)
SELECT stamp FROM written UNION ALL SELECT -head_stamp FROM head
"""
"""Heads are set if they are below $4; `told` is what to do with one row each, in the partitions whose heads were.
Returns the stamps of what was done, and those that heads were set to, as negative numbers."""


INSERT = _SINGLE.format(
    change=f"""
    INSERT INTO lazulite.rows ({COLUMNS}) SELECT {COLUMNS} FROM told
    ON CONFLICT (space, partition_key, row_key) DO NOTHING
    RETURNING stamp
"""
)
"""Writes the rows that are not there."""

REPLACE = _SINGLE.format(
    change=f"""
    INSERT INTO lazulite.rows ({COLUMNS}) SELECT {COLUMNS} FROM told {ON_CONFLICT_REPLACE}
    RETURNING stamp
"""
)
"""Writes rows, there or not."""

_MEANT = """
known.space = told.space AND known.partition_key = told.partition_key AND known.row_key = told.row_key
    AND (told.expected IS NULL OR known.stamp = told.expected)
"""

UPDATE_PRESENT = _SINGLE.format(
    change=f"""
    UPDATE lazulite.rows AS known SET stamp = told.stamp, value = told.value FROM told WHERE {_MEANT}
    RETURNING told.stamp
"""
)
"""Writes the rows that are there, with the stamp expected if there is one."""

DELETE_PRESENT = _SINGLE.format(
    change=f"""
    DELETE FROM lazulite.rows AS known USING told WHERE {_MEANT}
    RETURNING told.stamp
"""
)
"""Deletes likewise."""

APPLY = f"""
WITH told AS (
    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bigint[])
        AS each (space, partition_key, before, after)
), head AS (
    INSERT INTO lazulite.partitions AS known (space, partition_key, stamp) SELECT space, partition_key, after FROM told
    ON CONFLICT (space, partition_key) DO UPDATE SET stamp = excluded.stamp WHERE known.stamp =
        (SELECT before FROM told WHERE told.space = known.space AND told.partition_key = known.partition_key)
    RETURNING space, partition_key
), gone AS (
    DELETE FROM lazulite.rows AS known
    USING unnest($5::bigint[], $6::bytea[], $7::bytea[]) AS each (space, partition_key, row_key)
        JOIN head USING (space, partition_key)
    WHERE known.space = each.space AND known.partition_key = each.partition_key AND known.row_key = each.row_key
), written AS (
    INSERT INTO lazulite.rows ({COLUMNS})
    SELECT {COLUMNS} FROM unnest($8::bigint[], $9::bytea[], $10::bytea[], $11::bigint[], $12::bytea[], $13::bytea[],
        $14::bytea[]) AS each ({COLUMNS})
    JOIN head USING (space, partition_key)
    {ON_CONFLICT_REPLACE}
)
SELECT space, partition_key FROM head
"""
"""Deletes and writes rows of the partitions whose heads are what they were; returns which they are."""

CHECK_WRITABLE = """
INSERT INTO lazulite.store (name, value) VALUES ('written', now()::text)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""

TIME = "SELECT extract(epoch FROM clock_timestamp())"
"""The database's time, in seconds since 1970."""

SESSION = """
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_sort = off;
SET jit = off;
SET default_transaction_isolation = 'read committed';
SET statement_timeout = {milliseconds};
SET idle_in_transaction_session_timeout = {milliseconds}
"""
"""Each statement has one right plan, by the primary keys, whatever the statistics say of a table that was empty when
they were gathered; each waits for others where it can, instead of giving up for them; and none outlives for long who
sent it. Only PostgreSQL itself, and what is built of it, knows these settings, and they do not reach the workers of
Citus: what is sent there reads the rows asked for and no others without them."""

PLANNED_ONCE = "SET plan_cache_mode = force_generic_plan"
"""For it is the right plan whatever the arguments. Not on Citus, which must know them to tell which shard a statement
is for: forced to do without, it refuses all but the simplest."""
