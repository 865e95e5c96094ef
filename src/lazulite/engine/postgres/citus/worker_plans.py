"""The planner settings of a Citus cluster's workers, which a session's own settings do not reach.

A page over partitions needs the first rows of each shard by the index. Without these settings, a worker whose
statistics are stale or missing reads and sorts all rows that are left. Settings of the role reach the workers, so
Lazulite sets them for its own role in its own database.
"""

import asyncpg

from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.errors import LOST, line

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


async def set_up(connection: Connection, seconds: float) -> list[str]:
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
