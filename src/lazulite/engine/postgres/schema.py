"""The tables in the database: created on first use, versioned, upgraded by the command `lazulite upgrade`.

    rows        a row of the engine: its index key (see `keys`), the timestamp of its last commit (`stamp`), its value
    partitions  a partition version row for each partition ever written (see `sql_statements`)
    dropped     the dropped spaces that may not be empty yet (see `drops`)
    store       metadata: `format`, the version of these tables

The tables of contents are added to them (see `contents.tables`). Older versions of this format know nothing of them.

On Citus, rows and partitions are distributed by their partition key and colocated; the others are on every node.
"""

from collections.abc import Callable
from typing import NamedTuple

import asyncpg

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.postgres.connection import Connection, PrimaryConnector
from lazulite.engine.postgres.contents.tables import add_tables
from lazulite.engine.postgres.errors import ALREADY_MADE, database_errors
from lazulite.engine.postgres.settings import PostgresSettings

FORMAT = 1
"""The version that this program writes and reads."""

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

_TUNED = "ALTER TABLE lazulite.partitions SET (fillfactor = 70)"
"""Free space on each page for the next tuple of a version row, so that an update changes no index."""

_DISTRIBUTED = """
SELECT create_distributed_table('lazulite.rows', 'partition_key');
SELECT create_distributed_table('lazulite.partitions', 'partition_key', colocate_with => 'lazulite.rows');
SELECT create_reference_table('lazulite.dropped');
SELECT create_reference_table('lazulite.store')
"""

_LOCAL_GROUP = "SELECT groupid FROM pg_catalog.pg_dist_local_group"
"""0 at a coordinator, and on a server that is no part of a cluster."""

_UPGRADES: dict[int, str] = {}
"""By format: the statements that upgrade it to the next one."""


class DatabaseKind(NamedTuple):
    """The kind of a database."""

    version: str
    citus: bool
    settings: bool
    """Whether it has PostgreSQL's session settings."""

    @property
    def scripts(self) -> bool:
        """Whether changes must be sent as scripts."""
        return self.citus or "CockroachDB" in self.version


async def kind_of(connection: Connection) -> DatabaseKind:
    """Return the kind of a database."""
    version = await connection.fetchval("SELECT version()")
    citus = await connection.fetchval("SELECT count(*) FROM pg_catalog.pg_extension WHERE extname = 'citus'")
    return DatabaseKind(version, bool(citus), "CockroachDB" not in version)


async def open_schema(connection: Connection, kind: DatabaseKind) -> None:
    """Create the tables if there are none.

    Raises:
        StoreUnusableError: the tables have another format.
    """
    found = await _format(connection)
    if found is None:
        if kind.citus and await connection.fetchval(_LOCAL_GROUP):
            raise StoreUnusableError(
                "the database has no tables yet, and only the coordinator of Citus can make them; start there first"
            )
        found = await _make(connection, kind)
    if found > FORMAT:
        raise StoreUnusableError(
            f"the tables in the database are of format {found}, newer than this program knows ({FORMAT});"
            " install the version of Lazulite that made them, or a later one"
        )
    if found < FORMAT:
        raise StoreUnusableError(
            f"the tables in the database are of format {found}, and this program needs {FORMAT}; once no older"
            " program serves from them, run lazulite upgrade --engine with the same database"
        )
    await add_tables(connection, citus=kind.citus, tuned=kind.settings)


async def is_there(settings: PostgresSettings) -> bool:
    """Return whether a database has tables of Lazulite, whatever their format.

    Raises:
        EngineUnavailableError: the database cannot be reached.
    """
    with database_errors():
        connection = await PrimaryConnector(settings).connect()
        try:
            return await _format(connection) is not None
        finally:
            await connection.close()


async def upgrade(
    settings: PostgresSettings, begin: Callable[[int, int], None] = lambda _, __: None
) -> tuple[int, int]:
    """Upgrade the tables to this program's format; return the old and the new format.

    Args:
        settings: of the database.
        begin: called as each step begins, with the number of steps that are done, and that of all.

    Raises:
        StoreUnusableError: there are none, or they have a newer format.
        EngineUnavailableError: the database cannot be reached.
    """
    with database_errors():
        connection = await PrimaryConnector(settings).connect()
        try:
            found = await _format(connection)
            if found is None:
                raise StoreUnusableError("there are no tables of Lazulite in this database")
            if found > FORMAT:
                await open_schema(connection, await kind_of(connection))
            for version in range(found, FORMAT):
                begin(version - found, FORMAT - found)
                async with connection.transaction():
                    await connection.execute(_UPGRADES[version])
                    await _note(connection, version + 1)
            return found, FORMAT
        finally:
            await connection.close()


async def _make(connection: Connection, kind: DatabaseKind) -> int:
    try:
        async with connection.transaction():
            await connection.execute(_TABLES)
            if kind.settings:
                await connection.execute(_TUNED)
            if kind.citus:
                await connection.execute(_DISTRIBUTED)
            await _note(connection, FORMAT)
    except ALREADY_MADE:
        pass  # Another process was first; its transaction has ended, or this one would still wait for it.
    found = await _format(connection)
    if found is None:
        raise StoreUnusableError("the database has a schema lazulite that is not Lazulite's")
    return found


async def _format(connection: Connection) -> int | None:
    try:
        found = await connection.fetchval("SELECT value FROM lazulite.store WHERE name = 'format'")
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return None
    return None if found is None else int(found)


async def _note(connection: Connection, version: int) -> None:
    await connection.execute(
        "INSERT INTO lazulite.store (name, value) VALUES ('format', $1)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        str(version),
    )
