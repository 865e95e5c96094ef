"""The tables in the database: created on first use, versioned, upgraded by the command `lazulite upgrade`.

    rows             a row of the engine: its index key (see `keys`), the timestamp of its last commit (`stamp`), its
                     value
    partitions       a partition version row for each partition ever written (see `sql_statements`)
    dropped          the dropped spaces that may not be empty yet (see `drops`)
    store            metadata: `format`, the version of these tables
    contents         a head for each content: its owner, its length once it is sealed, its state, and since when
    content_windows  its bytes: windows of at most 256 KiB, with the CRC-32 of each

On Citus, `rows` and `partitions` are distributed by partition key and colocated. `contents` and `content_windows` are
distributed by content number and colocated. `dropped` and `store` are reference tables.

The tables of contents are added when a process first finds them missing. Older programs with the same format ignore
these tables. The state of a head is `open` while the content is written, `sealed` once it is durable, `kept` once a row
refers to it, and `doomed` while it is deleted. Invariant: a window has a head. The foreign key rejects a window whose
head was deleted meanwhile, and deletes the windows with their head.
"""

from collections.abc import Callable
from typing import NamedTuple

import asyncpg

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.postgres.connection import Connection, PrimaryConnector
from lazulite.engine.postgres.errors import ALREADY_MADE, database_errors
from lazulite.engine.postgres.settings import PostgresSettings

FORMAT = 1
"""The version of new tables."""
WITH_INDEXES = 2
"""The version of tables in which an index is, or was, declared; in all else that of `FORMAT`. Older programs would not
keep its entries, so they must reject it. This program rejects greater ones."""

_TABLES = """
CREATE SCHEMA lazulite;
CREATE TABLE lazulite.store (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE lazulite.rows (
    space bigint NOT NULL,
    partition_key bytea NOT NULL,
    row_key bytea NOT NULL,
    stamp bigint NOT NULL,
    value bytea NOT NULL,
    long_partition_key bytea,
    long_row_key bytea,
    PRIMARY KEY (space, partition_key, row_key)
);
CREATE TABLE lazulite.partitions (
    space bigint NOT NULL,
    partition_key bytea NOT NULL,
    stamp bigint NOT NULL,
    PRIMARY KEY (space, partition_key)
);
CREATE TABLE lazulite.dropped (
    space bigint PRIMARY KEY,
    since timestamptz NOT NULL DEFAULT now(),
    leased_until timestamptz NOT NULL DEFAULT now()
)
"""

_SET_FILLFACTOR = "ALTER TABLE lazulite.partitions SET (fillfactor = 70)"
"""Free space on each page for the next tuple of a version row, so that an update changes no index."""

_DISTRIBUTE_TABLES = """
SELECT create_distributed_table('lazulite.rows', 'partition_key');
SELECT create_distributed_table('lazulite.partitions', 'partition_key', colocate_with => 'lazulite.rows');
SELECT create_reference_table('lazulite.dropped');
SELECT create_reference_table('lazulite.store')
"""

_LOCAL_GROUP = "SELECT groupid FROM pg_catalog.pg_dist_local_group"
"""0 at a coordinator, and on a server that is no part of a cluster."""

_UPGRADES: dict[int, str] = {}
"""By format: the statements that upgrade it to the next one."""

_CONTENT_TABLES = """
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
_SET_CONTENT_STORAGE = "ALTER TABLE lazulite.content_windows ALTER COLUMN data SET STORAGE EXTERNAL"
"""Bytes of blobs are seldom compressible, and compressing them takes longer than writing them."""
_DISTRIBUTE_CONTENT_TABLES = """
SELECT create_distributed_table('lazulite.contents', 'content', colocate_with => 'none');
SELECT create_distributed_table('lazulite.content_windows', 'content', colocate_with => 'lazulite.contents')
"""
_ADD_WINDOW_FOREIGN_KEY = """
ALTER TABLE lazulite.content_windows ADD CONSTRAINT windows_have_a_head
FOREIGN KEY (space, content) REFERENCES lazulite.contents (space, content) ON DELETE CASCADE
"""
_COUNT_CONTENT_TABLES = (
    "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'lazulite' AND table_name = 'contents'"
)


class DatabaseKind(NamedTuple):
    """The product behind a connection, and what it supports."""

    version: str
    citus: bool
    has_postgres_settings: bool
    """Whether it has PostgreSQL's session settings."""

    @property
    def needs_scripts(self) -> bool:
        """Whether changes must be sent as scripts."""
        return self.citus or "CockroachDB" in self.version


async def detect_database_kind(connection: Connection) -> DatabaseKind:
    """Return the kind of the database behind a connection."""
    version = await connection.fetchval("SELECT version()")
    citus = await connection.fetchval("SELECT count(*) FROM pg_catalog.pg_extension WHERE extname = 'citus'")
    return DatabaseKind(version, bool(citus), "CockroachDB" not in version)


async def open_schema(connection: Connection, kind: DatabaseKind) -> None:
    """Create missing tables, and check their format.

    Raises:
        StoreUnusableError: the tables have another format.
    """
    found = await _read_format(connection)
    if found is None:
        if kind.citus and await connection.fetchval(_LOCAL_GROUP):
            raise StoreUnusableError(
                "the database has no tables yet, and only the coordinator of Citus can make them; start there first"
            )
        found = await _create_tables(connection, kind)
    if found > WITH_INDEXES:
        raise StoreUnusableError(
            f"the tables in the database are of format {found}, newer than this program knows ({WITH_INDEXES});"
            " install the version of Lazulite that made them, or a later one"
        )
    if found < FORMAT:
        raise StoreUnusableError(
            f"the tables in the database are of format {found}, and this program needs {FORMAT}; once no older"
            " program serves from them, run lazulite upgrade --engine with the same database"
        )
    await add_content_tables(connection, citus=kind.citus, tuned=kind.has_postgres_settings)


async def raise_format(connection: Connection) -> None:
    """Raise the format of the tables to `WITH_INDEXES`, unless it is."""
    if not await has_raised_format(connection):
        await _write_format(connection, WITH_INDEXES)


async def has_raised_format(connection: Connection) -> bool:
    """Return whether the format of the tables is at least `WITH_INDEXES`."""
    return (await _read_format(connection) or 0) >= WITH_INDEXES


async def has_tables(settings: PostgresSettings) -> bool:
    """Return whether a database has tables of Lazulite, whatever their format.

    Raises:
        EngineUnavailableError: the database cannot be reached.
    """
    with database_errors():
        connection = await PrimaryConnector(settings).connect()
        try:
            return await _read_format(connection) is not None
        finally:
            await connection.close()


async def upgrade(
    settings: PostgresSettings, begin: Callable[[int, int], None] = lambda _, __: None
) -> tuple[int, int]:
    """Upgrade the tables to this program's format; return the old and the new format.

    Args:
        settings: how to reach the database.
        begin: called before each step, with the number of finished steps and the total.

    Raises:
        StoreUnusableError: the database has no tables of Lazulite, or they have a newer format.
        EngineUnavailableError: the database cannot be reached.
    """
    with database_errors():
        connection = await PrimaryConnector(settings).connect()
        try:
            found = await _read_format(connection)
            if found is None:
                raise StoreUnusableError("there are no tables of Lazulite in this database")
            if found > WITH_INDEXES:
                await open_schema(connection, await detect_database_kind(connection))
            for version in range(found, FORMAT):
                begin(version - found, FORMAT - found)
                async with connection.transaction():
                    await connection.execute(_UPGRADES[version])
                    await _write_format(connection, version + 1)
            return found, max(found, FORMAT)
        finally:
            await connection.close()


async def _create_tables(connection: Connection, kind: DatabaseKind) -> int:
    try:
        async with connection.transaction():
            await connection.execute(_TABLES)
            if kind.has_postgres_settings:
                await connection.execute(_SET_FILLFACTOR)
            if kind.citus:
                await connection.execute(_DISTRIBUTE_TABLES)
            await _write_format(connection, FORMAT)
    except ALREADY_MADE:
        pass  # Another process was first; its transaction has ended, or this one would still wait for it.
    found = await _read_format(connection)
    if found is None:
        raise StoreUnusableError("the database has a schema lazulite that is not Lazulite's")
    return found


async def _read_format(connection: Connection) -> int | None:
    try:
        found = await connection.fetchval("SELECT value FROM lazulite.store WHERE name = 'format'")
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return None
    return None if found is None else int(found)


async def _write_format(connection: Connection, version: int) -> None:
    await connection.execute(
        "INSERT INTO lazulite.store (name, value) VALUES ('format', $1)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        str(version),
    )


async def add_content_tables(connection: Connection, *, citus: bool, tuned: bool) -> None:
    """Create the tables of contents if they are missing.

    Args:
        connection: to a database that has the engine's tables.
        citus: whether they are distributed.
        tuned: whether the database has PostgreSQL's settings of storage.
    """
    if await connection.fetchval(_COUNT_CONTENT_TABLES):
        return
    try:
        async with connection.transaction():
            await connection.execute(_CONTENT_TABLES)
            if tuned:
                await connection.execute(_SET_CONTENT_STORAGE)
            if citus:
                await connection.execute(_DISTRIBUTE_CONTENT_TABLES)
            await connection.execute(_ADD_WINDOW_FOREIGN_KEY)
    except ALREADY_MADE:
        pass  # Another process was first; its transaction has ended, or this one would still wait for it.
