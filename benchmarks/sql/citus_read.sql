-- Reads one row. Variables: space, entities, sharing.
\set number random(0, :entities - 1)
\set partition 1000000000000 + :number / :sharing
\set row 1000000 + :number % :sharing
SELECT value FROM lazulite.rows WHERE space = :space
    AND partition_key = :partition::bytea AND row_key = :row::bytea \gset
