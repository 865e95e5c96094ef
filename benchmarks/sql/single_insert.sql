-- Sets the head of a partition and inserts a row. Variables: space, first, clients, turn, partitions, value.
\set turn :turn + 1
\set number :first + :turn * :clients + :client_id
\set partition 100 + :number % :partitions
WITH head AS (
    INSERT INTO lazulite.partitions AS known (space, partition_key, stamp)
    VALUES (:space, 'w'::bytea || substring(:partition::bytea FROM 2), :number)
    ON CONFLICT (space, partition_key) DO UPDATE SET stamp = excluded.stamp WHERE known.stamp < :number
    RETURNING space, partition_key
)
INSERT INTO lazulite.rows (space, partition_key, row_key, stamp, value)
SELECT space, partition_key, substring(:number::bytea FROM 2), :number::bigint, :value::bytea FROM head
ON CONFLICT (space, partition_key, row_key) DO NOTHING
RETURNING stamp \gset
