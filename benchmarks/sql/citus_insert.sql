-- Sets the version of a partition and inserts rows, in one message. Variables: space, first, clients, turn, partitions,
-- value.
\set turn :turn + 1
\set number :first + :turn * :clients + :client_id
\set partition 100 + :number % :partitions
INSERT INTO lazulite.partitions AS known (space, partition_key, stamp) VALUES (:space, 'w:partition', :number)
ON CONFLICT (space, partition_key) DO UPDATE SET stamp = greatest(known.stamp, excluded.stamp) \;
INSERT INTO lazulite.rows (space, partition_key, row_key, stamp, value)
VALUES ROWS;
