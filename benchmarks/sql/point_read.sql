-- Reads one row by its primary key. Variables: space, keys, stride, partition_rows.
\set number random(0, :keys - 1) * :stride
\set partition 1000000000000 + :number / :partition_rows
\set row 1000000 + :number % :partition_rows
SELECT value FROM lazulite.rows WHERE space = :space
    AND partition_key = 'r'::bytea || substring(:partition::bytea FROM 2)
    AND row_key = substring(:row::bytea FROM 2) \gset
