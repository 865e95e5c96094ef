"""The settings of a database's servers: what the engine finds when it starts, and what it sets.

- The database should keep what it acknowledges; people read the warnings.
- Every session must parse literals as standard SQL does, where a backslash is an ordinary character. A Citus
  coordinator writes the constants of a statement again for its workers, by its own session's
  `standard_conforming_strings`; each worker parses them by its own. If the two differ, keys and values change silently.
- The planner settings of a Citus cluster's workers, which a session's own settings do not reach. A page over partitions
  needs the first rows of each shard by the index. Without these settings, a worker whose statistics are stale or
  missing reads and sorts all rows that are left. Settings of the role reach the workers, so Lazulite sets them for its
  own role in its own database.
"""

from collections.abc import Iterator

import asyncpg

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.errors import LOST, line

_SETTINGS = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names")
_READ = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY ($1::text[])"

SETTING = "standard_conforming_strings"

_WORKERS = """
SELECT nodename, nodeport, success, result FROM run_command_on_all_nodes('SHOW standard_conforming_strings')
JOIN pg_catalog.pg_dist_node USING (nodeid) WHERE shouldhaveshards
"""

_NAMES = ("enable_bitmapscan", "enable_seqscan", "enable_sort", "jit")
"""Each must be off. The last one, since a worker that has to sort then compiles the plan for its seeming cost."""

_FOUND = """
SELECT bool_and(result = '0') FROM run_command_on_all_nodes($$
    SELECT count(*) FROM pg_catalog.pg_settings WHERE setting <> 'off'
        AND name IN ('enable_bitmapscan', 'enable_seqscan', 'enable_sort', 'jit')
$$) WHERE success
"""
_COMMANDS = """
SELECT format('ALTER ROLE CURRENT_USER IN DATABASE %I SET %s = off', current_database(), name)
FROM unnest($1::text[]) AS name
"""
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('lazulite.worker_plans', 0))"
"""Two processes that set a role at once would fail."""


async def check_durability(connection: Connection) -> list[str]:
    """Return a line for each setting of a PostgreSQL server that can lose acknowledged writes, and when."""
    settings = {record["name"]: record["setting"] for record in await connection.fetch(_READ, list(_SETTINGS))}
    return list(_durability_warnings(settings))


def _durability_warnings(settings: dict[str, str]) -> Iterator[str]:
    if settings.get("synchronous_commit") == "off":
        yield (
            "the database has synchronous_commit = off: when it crashes, what was acknowledged in its last moments is"
            " lost, and may have been read before"
        )
    if settings.get("synchronous_commit") == "local" and settings.get("synchronous_standby_names"):
        yield (
            "the database has synchronous_commit = local: when a standby takes over, what was acknowledged and not yet"
            " sent to it is lost"
        )
    for name in ("fsync", "full_page_writes"):
        if settings.get(name) == "off":
            yield f"the database has {name} = off: when its machine crashes, the store may be damaged"


async def check_literals(connection: Connection, seconds: float) -> list[str]:
    """Check the sessions of a Citus coordinator on its workers.

    Args:
        connection: a connection to the coordinator.
        seconds: time limit for the workers' answers.

    Returns:
        A line for people about each worker that did not answer.

    Raises:
        StoreUnusableError: a worker would change keys and values silently.
    """
    try:
        found = await connection.fetch(_WORKERS, timeout=seconds)
    except (TimeoutError, asyncpg.PostgresConnectionError) as error:
        return [_unasked("a worker", str(error) or f"no answer within {seconds:g} s")]
    return list(_literal_warnings(found))


def _literal_warnings(found: list[asyncpg.Record]) -> Iterator[str]:
    for host, port, success, result in found:
        node = f"the worker {host}:{port}"
        if not success:
            yield _unasked(node, result)
        elif result != "on":
            raise StoreUnusableError(
                f"{node} has {SETTING} = {result}, which changes keys and values silently; set it to on for the"
                " database and the role there, then start again"
            )


def _unasked(node: str, reason: str) -> str:
    return f"{node} could not be asked for {SETTING}, which must be on: {reason.splitlines()[0]}"


async def set_worker_plans(connection: Connection, seconds: float) -> list[str]:
    """Set what is missing, for sessions that begin later; close the connection if something was.

    Args:
        connection: a connection to the coordinator.
        seconds: time limit for the nodes' answers.

    Returns:
        A line for people if something is missing and could not be set.
    """
    try:
        if await connection.fetchval(_FOUND, timeout=seconds):
            return []
        async with connection.transaction():
            await connection.execute(_LOCK, timeout=seconds)
            for (command,) in await connection.fetch(_COMMANDS, list(_NAMES)):
                await connection.execute(command, timeout=seconds)
    except (*LOST, asyncpg.PostgresError) as error:
        connection.terminate()
        return [f"the role's settings for workers could not be set, so scans may be slow: {line(error)}"]
    await connection.close()
    return []
