-- read_one
SELECT NULL::bytea AS row_key, NULL::bytea AS value, stamp FROM lazulite.partitions
    WHERE space = $1 AND partition_key = $2
UNION ALL
SELECT found.row_key, found.value, 0 FROM unnest($3::bytea[]) AS asked (row_key) CROSS JOIN LATERAL (
    SELECT row_key, value FROM lazulite.rows
    WHERE space = $1 AND partition_key = $2 AND row_key = asked.row_key LIMIT 1
) AS found;
-- insert
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
    INSERT INTO lazulite.rows (space, partition_key, row_key, stamp, value, long_partition_key, long_row_key) SELECT space, partition_key, row_key, stamp, value, long_partition_key, long_row_key FROM told
    ON CONFLICT (space, partition_key, row_key) DO NOTHING
    RETURNING stamp
)
SELECT stamp FROM written UNION ALL SELECT -head_stamp FROM head;
-- apply
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
    INSERT INTO lazulite.rows (space, partition_key, row_key, stamp, value, long_partition_key, long_row_key)
    SELECT space, partition_key, row_key, stamp, value, long_partition_key, long_row_key FROM unnest($8::bigint[], $9::bytea[], $10::bytea[], $11::bigint[], $12::bytea[], $13::bytea[],
        $14::bytea[]) AS each (space, partition_key, row_key, stamp, value, long_partition_key, long_row_key)
    JOIN head USING (space, partition_key)
ON CONFLICT (space, partition_key, row_key) DO UPDATE SET stamp = excluded.stamp, value = excluded.value
)
SELECT space, partition_key FROM head;
-- drop
INSERT INTO lazulite.dropped (space) VALUES ($1) ON CONFLICT (space) DO NOTHING;
-- dropped
SELECT space FROM lazulite.dropped;
