-- Returns the MB of the tables and their indexes on the disk.
SELECT relname, pg_relation_size(oid) / 1e6::float8 FROM pg_class
WHERE relnamespace = 'lazulite'::regnamespace AND relname ~ '^(rows|partitions)' ORDER BY relname DESC
