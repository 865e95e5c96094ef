"""The tables of contents, which are added to the engine's when a process first finds them missing.

    contents         a head for each content: its owner, its length once it is sealed, its state, and since when
    content_windows  its bytes: windows of at most 256 KiB, with the CRC-32 of each

The state of a head is `open` while the content is written, `sealed` once it is durable, `kept` once a row refers to it,
and `doomed` while it is deleted.

Invariant: a window has a head. The foreign key rejects a window whose head was deleted meanwhile, and deletes the
windows with their head. On Citus both tables are distributed by the number of the content, so they are colocated.
"""

from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.errors import ALREADY_MADE

_TABLES = """
CREATE TABLE lazulite.contents (
    space bigint NOT NULL,
    content bigint NOT NULL,
    partition bytea NOT NULL,
    length bigint,
    state text NOT NULL DEFAULT 'open',
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (space, content)
);
CREATE TABLE lazulite.content_windows (
    space bigint NOT NULL,
    content bigint NOT NULL,
    number integer NOT NULL,
    checksum bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (space, content, number)
);
CREATE INDEX undecided_contents ON lazulite.contents (since) WHERE state <> 'kept'
"""
_TUNED = "ALTER TABLE lazulite.content_windows ALTER COLUMN data SET STORAGE EXTERNAL"
"""Bytes of blobs are seldom compressible, and trying is slower than the disk."""
_DISTRIBUTED = """
SELECT create_distributed_table('lazulite.contents', 'content', colocate_with => 'none');
SELECT create_distributed_table('lazulite.content_windows', 'content', colocate_with => 'lazulite.contents')
"""
_LINKED = """
ALTER TABLE lazulite.content_windows ADD CONSTRAINT windows_have_a_head
FOREIGN KEY (space, content) REFERENCES lazulite.contents (space, content) ON DELETE CASCADE
"""
_ARE_THERE = (
    "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'lazulite' AND table_name = 'contents'"
)


async def add_tables(connection: Connection, *, citus: bool, tuned: bool) -> None:
    """Create the tables, unless they are there.

    Args:
        connection: to a database that has the engine's tables.
        citus: whether they are distributed.
        tuned: whether the database has PostgreSQL's settings of storage.
    """
    if await connection.fetchval(_ARE_THERE):
        return
    try:
        async with connection.transaction():
            await connection.execute(_TABLES)
            if tuned:
                await connection.execute(_TUNED)
            if citus:
                await connection.execute(_DISTRIBUTED)
            await connection.execute(_LINKED)
    except ALREADY_MADE:
        pass  # Another process was first; its transaction has ended, or this one would still wait for it.
