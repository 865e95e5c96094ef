-- Makes the table of `queue_put.sql` and `queue_cycle.sql`, with so many messages.
DO $$ BEGIN
    CREATE TABLE queue (
        id bigserial PRIMARY KEY, visible timestamptz NOT NULL, expires timestamptz NOT NULL,
        dequeues integer NOT NULL DEFAULT 0, value bytea NOT NULL
    );
    CREATE INDEX ON queue (visible);
    INSERT INTO queue (visible, expires, value)
    SELECT now(), now() + interval '7 days', repeat('x', 1024)::bytea FROM generate_series(1, ROWS);
END $$
