INSERT INTO lazulite.rows (space, partition_key, row_key, stamp, value)
SELECT SPACE, (1000000000000 + number / SHARING)::text::bytea, (1000000 + number % SHARING)::text::bytea, 1,
    repeat('x', BYTES)::bytea
FROM generate_series(0, ROWS - 1) AS number
