"""A check that every session parses literals as standard SQL does, where a backslash is an ordinary character.

A Citus coordinator writes the constants of a statement anew for its workers, by its own session's
`standard_conforming_strings`; each worker parses them by its own. If the two differ, keys and values change silently.
"""

from collections.abc import Iterator

import asyncpg

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.postgres.connection import Connection

SETTING = "standard_conforming_strings"

_WORKERS = """
SELECT nodename, nodeport, success, result FROM run_command_on_all_nodes('SHOW standard_conforming_strings')
JOIN pg_catalog.pg_dist_node USING (nodeid) WHERE shouldhaveshards
"""


async def check_workers(connection: Connection, seconds: float) -> list[str]:
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
    return list(_judged(found))


def _judged(found: list[asyncpg.Record]) -> Iterator[str]:
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
