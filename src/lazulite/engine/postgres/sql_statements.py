"""The prepared statements, in SQL.

A *partition version row* is a partition's row in `partitions`; its column `stamp` is the partition's version. Each
commit that writes sets the version to its commit timestamp, which is greater. The lock on the version row, held until
the commit is durable, puts the commits of a partition in one order. So a partition whose version is unchanged has not
changed.

One statement with `WITH` changes version rows and rows. It is a transaction by itself, and writes rows only where it
changed the version row. `read committed` is enough: the statement waits for a version row that another commit has
locked, and then evaluates its condition on the new version. If that is the version that was read, nothing else of the
partition can have changed since.
"""

GET = """
SELECT row_at.value FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])
    WITH ORDINALITY AS asked (space, partition_key, row_key, place)
LEFT JOIN lazulite.rows AS row_at USING (space, partition_key, row_key)
ORDER BY place
"""
"""The values of many rows, in the order of the arguments."""

GET_EACH = "SELECT $4::int, value FROM lazulite.rows WHERE space = $1 AND partition_key = $2 AND row_key = $3"
"""The place of one row among others that are asked for, and its value; nothing if it is absent."""

GET_OF_PARTITION = """
SELECT found.row_key, found.value FROM unnest($3::bytea[]) AS asked (row_key) CROSS JOIN LATERAL (
    SELECT row_key, value FROM lazulite.rows
    WHERE space = $1 AND partition_key = $2 AND row_key = asked.row_key LIMIT 1
) AS found
"""
"""The values of many rows of one partition, by index key; nothing of those that are absent. See `READ_ONE`."""

READ = """
SELECT place, NULL::bytea AS row_key, NULL::bytea AS value, stamp
FROM unnest($1::bigint[], $2::bytea[]) WITH ORDINALITY AS asked (space, partition_key, place)
JOIN lazulite.partitions USING (space, partition_key)
UNION ALL
SELECT place, row_key, value, 0
FROM unnest($3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[]) AS asked (place, space, partition_key, row_key)
JOIN lazulite.rows USING (space, partition_key, row_key)
"""
"""The versions of some partitions, and some of their rows; `place` numbers the partitions from 1 on."""

READ_ONE = """
SELECT NULL::bytea AS row_key, NULL::bytea AS value, stamp FROM lazulite.partitions
    WHERE space = $1 AND partition_key = $2
UNION ALL
SELECT found.row_key, found.value, 0 FROM unnest($3::bytea[]) AS asked (row_key) CROSS JOIN LATERAL (
    SELECT row_key, value FROM lazulite.rows
    WHERE space = $1 AND partition_key = $2 AND row_key = asked.row_key LIMIT 1
) AS found
"""
"""The same for one partition. The limit forces a look-up of each row by its whole key. Otherwise a worker of Citus,
which `SESSION` does not reach, reads the whole partition once its statistics say that the partition is small."""

LOCK = "SELECT stamp FROM lazulite.partitions WHERE space = $1 AND partition_key = $2 FOR UPDATE"
"""Locks a partition against writes of other transactions until this one ends."""

COLUMNS = "space, partition_key, row_key, stamp, value, long_partition_key, long_row_key"
ON_CONFLICT_REPLACE = """
ON CONFLICT (space, partition_key, row_key) DO UPDATE SET stamp = excluded.stamp, value = excluded.value
"""

_SINGLE = """
WITH version_row AS (
    INSERT INTO lazulite.partitions AS known (space, partition_key, stamp)
    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[])
    ON CONFLICT (space, partition_key) DO UPDATE SET stamp = excluded.stamp WHERE known.stamp < $4
    RETURNING space, partition_key, stamp AS version
), given AS (
    SELECT * FROM unnest($5::bigint[], $6::bytea[], $7::bytea[], $8::bigint[], $9::bytea[], $10::bytea[], $11::bytea[],
        $12::bigint[]) AS each (space, partition_key, row_key, stamp, value, long_partition_key, long_row_key, expected)
    JOIN version_row USING (space, partition_key)
), written AS (
    {change}
)
SELECT stamp FROM written UNION ALL SELECT -version FROM version_row
"""
"""Sets the versions that are below $4. `given` are the writes, one row each, to the partitions whose versions were set.
Returns the timestamps of the writes that were made, and the new versions as negative numbers."""


INSERT = _SINGLE.format(
    change=f"""
    INSERT INTO lazulite.rows ({COLUMNS}) SELECT {COLUMNS} FROM given
    ON CONFLICT (space, partition_key, row_key) DO NOTHING
    RETURNING stamp
"""
)
"""Writes the rows that are absent."""

REPLACE = _SINGLE.format(
    change=f"""
    INSERT INTO lazulite.rows ({COLUMNS}) SELECT {COLUMNS} FROM given {ON_CONFLICT_REPLACE}
    RETURNING stamp
"""
)
"""Writes rows, present or not."""

_MEANT = """
known.space = given.space AND known.partition_key = given.partition_key AND known.row_key = given.row_key
    AND (given.expected IS NULL OR known.stamp = given.expected)
"""

UPDATE_PRESENT = _SINGLE.format(
    change=f"""
    UPDATE lazulite.rows AS known SET stamp = given.stamp, value = given.value FROM given WHERE {_MEANT}
    RETURNING given.stamp
"""
)
"""Writes the rows that are present, with the expected timestamp if there is one."""

DELETE_PRESENT = _SINGLE.format(
    change=f"""
    DELETE FROM lazulite.rows AS known USING given WHERE {_MEANT}
    RETURNING given.stamp
"""
)
"""Deletes the rows that are present, with the expected timestamp if there is one."""

_APPLY = f"""
WITH given AS (
    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bigint[])
        AS each (space, partition_key, before, after)
), unexpected AS (
    SELECT space, partition_key FROM unnest($15::bigint[], $16::bytea[], $17::bytea[], $18::bytea[])
        AS each (space, partition_key, row_key, prefix)
    WHERE NOT EXISTS (
        SELECT FROM lazulite.rows AS known WHERE known.space = each.space AND known.partition_key = each.partition_key
            AND known.row_key = each.row_key AND substr(known.value, 1, octet_length(prefix)) = prefix
    )
), version_row AS (
    INSERT INTO lazulite.partitions AS known (space, partition_key, stamp)
    SELECT space, partition_key, after FROM given WHERE NOT EXISTS (
        SELECT FROM unexpected WHERE unexpected.space = given.space AND unexpected.partition_key = given.partition_key
    )
    ON CONFLICT (space, partition_key) DO UPDATE SET stamp = excluded.stamp WHERE known.stamp =
        (SELECT before FROM given WHERE given.space = known.space AND given.partition_key = known.partition_key)
    RETURNING space, partition_key
), gone AS (
    DELETE FROM lazulite.rows AS known
    USING unnest($5::bigint[], $6::bytea[], $7::bytea[]) AS each (space, partition_key, row_key)
        JOIN version_row USING (space, partition_key)
    WHERE known.space = each.space AND known.partition_key = each.partition_key AND known.row_key = each.row_key
), written AS (
    INSERT INTO lazulite.rows ({COLUMNS})
    SELECT {COLUMNS} FROM unnest($8::bigint[], $9::bytea[], $10::bytea[], $11::bigint[], $12::bytea[], $13::bytea[],
        $14::bytea[]) AS each ({COLUMNS})
    JOIN version_row USING (space, partition_key)
    {ON_CONFLICT_REPLACE}
){{companions}}
SELECT space, partition_key FROM version_row
"""
APPLY = _APPLY.format(companions="")
"""Deletes and writes rows of the partitions with the expected versions, in which some rows begin as expected; returns
these partitions. The rows are those of the statement's snapshot. It has the commit that set the expected version, since
that was known before the statement was sent; and no later one, or the version would be another."""

_EACH = ", ".join(f"each.{name}" for name in COLUMNS.split(", "))
APPLY_WITH_COMPANIONS = _APPLY.format(
    companions=f""", companions AS (
    SELECT {_EACH} FROM unnest($19::bigint[], $20::bytea[], $21::bytea[], $22::bytea[], $23::bigint[], $24::bytea[],
        $25::bigint[], $26::bytea[], $27::bytea[]) AS each (space, partition_key, row_key, long_row_key, stamp, value,
        of_space, of_partition_key, long_partition_key)
    JOIN version_row ON version_row.space = of_space AND version_row.partition_key = of_partition_key
), companions_gone AS (
    DELETE FROM lazulite.rows AS known USING companions AS each
    WHERE each.value IS NULL
        AND known.space = each.space AND known.partition_key = each.partition_key AND known.row_key = each.row_key
), companions_written AS (
    INSERT INTO lazulite.rows ({COLUMNS}) SELECT {COLUMNS} FROM companions WHERE value IS NOT NULL
    {ON_CONFLICT_REPLACE}
)"""
)
"""The same, with changes of rows elsewhere. Each belongs to a partition that changes: its own columns come first, then
the space and the partition of the change that it is made with."""


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
SET idle_in_transaction_session_timeout = {idle_milliseconds}
"""
"""Each statement has one right plan, by the primary keys, whatever the statistics say of a table that was empty when
they were gathered. Each statement waits for locks instead of failing, and ends soon after its client. Only PostgreSQL
and its derivatives know these settings. They do not reach the workers of Citus, so the statements for Citus read no
other rows without them."""

PLANNED_ONCE = "SET plan_cache_mode = force_generic_plan"
"""The generic plan is right for all arguments. Not on Citus, which needs the arguments to choose a shard, and rejects
most statements without them."""

ONE_SESSION_EACH = "SET citus.max_adaptive_executor_pool_size = 1"
"""A statement that goes to several shards of a worker of Citus asks them one after the other, over the one session that
is kept. By default it opens up to 16 sessions with each worker, and closes all but one when it ends: for a page, that
takes the worker longer than the shards take."""
