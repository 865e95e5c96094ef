"""The statements on the tables of contents; see `schema`.

The times are those of the database, on Citus those of the content's node. A head is overdue after an hour in which it
was neither touched, nor sealed, nor kept.
"""

BEGIN = """
INSERT INTO lazulite.contents (space, content, partition) VALUES ($1, $2, $3)
ON CONFLICT (space, content) DO NOTHING RETURNING content
"""
TOUCH = "UPDATE lazulite.contents SET since = now() WHERE space = $1 AND content = $2 AND state = 'open'"

ADD_WINDOW = """
INSERT INTO lazulite.content_windows (space, content, number, checksum, data) VALUES ($1, $2, $3, $4, $5)
"""
ADD_WINDOW_UNSYNCED = """
INSERT INTO lazulite.content_windows (space, content, number, checksum, data)
SELECT $1::bigint, $2::bigint, $3::integer, $4::bigint, $5::bytea FROM set_config('synchronous_commit', 'off', true)
"""
"""The commit does not wait for the disk. SEAL comes later in the same log, and counts the windows."""

SEAL = """
UPDATE lazulite.contents SET state = 'sealed', length = $3, since = now()
WHERE space = $1 AND content = $2 AND state = 'open' AND since >= now() - interval '1 hour'
    AND (SELECT count(*) FROM lazulite.content_windows WHERE space = $1 AND content = $2) = $4
RETURNING content
"""
KEEP = """
UPDATE lazulite.contents SET state = 'kept' WHERE space = $1 AND content = ANY($2::bigint[]) AND state = 'sealed'
"""

LENGTH = """
SELECT length, partition FROM lazulite.contents WHERE space = $1 AND content = $2 AND state IN ('sealed', 'kept')
"""
WINDOWS = """
SELECT checksum, data FROM lazulite.content_windows
WHERE space = $1 AND content = $2 AND number >= $3 AND number < $4 ORDER BY number
"""
COPY_WINDOWS = """
INSERT INTO lazulite.content_windows (space, content, number, checksum, data)
SELECT $1::bigint, $2::bigint, number, checksum, data FROM lazulite.content_windows
WHERE space = $3 AND content = $4 AND number >= $5 AND number < $6
"""

UNDECIDED = """
SELECT space, content, partition, state FROM lazulite.contents
WHERE state <> 'kept' AND since < now() - interval '1 hour' ORDER BY since LIMIT $1
"""
DOOM_OVERDUE = """
UPDATE lazulite.contents SET state = 'doomed'
WHERE space = $1 AND content = ANY($2::bigint[]) AND state <> 'kept' AND since < now() - interval '1 hour'
RETURNING content
"""

DOOM_LARGE = """
UPDATE lazulite.contents SET state = 'doomed'
WHERE space = $1 AND content = ANY($2::bigint[]) AND (length IS NULL OR length > $3) RETURNING content
"""
DELETE_WINDOWS = """
DELETE FROM lazulite.content_windows WHERE space = $1 AND content = $2 AND number < $3 RETURNING number
"""
DELETE = "DELETE FROM lazulite.contents WHERE space = $1 AND content = ANY($2::bigint[])"
OF_SPACE = "SELECT content FROM lazulite.contents WHERE space = $1 LIMIT $2"
