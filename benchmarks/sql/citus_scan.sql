-- Reads a page over partitions: the keys and sizes, then the values. Variables: space, entities, sharing, count.
\set first 1000000000000 + random(0, (:entities - :count) / :sharing)
\set last :first + :count / :sharing
SELECT partition_key, row_key, octet_length(value) AS bytes FROM lazulite.rows
WHERE space = :space AND (partition_key, row_key) >= (:first::bytea, ''::bytea)
    AND (partition_key, row_key) < ('2'::bytea, ''::bytea)
ORDER BY partition_key, row_key LIMIT :count;
SELECT partition_key AS whole_partition_key, row_key AS whole_row_key, value FROM lazulite.rows
WHERE space = :space AND (partition_key, row_key) >= (:first::bytea, ''::bytea)
    AND (partition_key, row_key) < (:last::bytea, ''::bytea)
ORDER BY partition_key, row_key LIMIT :count;
