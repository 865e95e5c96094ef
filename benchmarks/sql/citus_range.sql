-- Reads neighbours in a partition. Variables: space, entities, sharing, count.
\set number random(0, :entities / :count - 1) * :count
\set partition 1000000000000 + :number / :sharing
\set row 1000000 + :number % :sharing
SELECT partition_key, row_key, value FROM lazulite.rows WHERE space = :space
    AND partition_key = :partition::bytea AND row_key >= :row::bytea ORDER BY row_key LIMIT :count;
