-- Copies the first partition, past the service, to the partitions 1 to LAST of a SPACE.
DO $$ BEGIN FOR number IN 1..LAST LOOP
    INSERT INTO lazulite.rows (space, partition_key, row_key, stamp, value)
        SELECT space, key, row_key, stamp, overlay(value PLACING key FROM position(partition_key IN value))
        FROM lazulite.rows, convert_to('r' || lpad(number::text, 12, '0'), 'UTF8') AS key
        WHERE space = SPACE AND partition_key = 'r000000000000'::bytea;
    INSERT INTO lazulite.partitions (space, partition_key, stamp)
        SELECT space, key, stamp
        FROM lazulite.partitions, convert_to('r' || lpad(number::text, 12, '0'), 'UTF8') AS key
        WHERE space = SPACE AND partition_key = 'r000000000000'::bytea;
END LOOP; END $$
