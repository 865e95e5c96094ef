"""Sessions with the workers of a Citus cluster, without the coordinator in between.

A worker knows all shards, too. A statement for its own rows takes one process there, instead of one there and one at
the coordinator; a script takes one round trip, instead of one for each statement, a begin and a commit.

A worker is *joined* if it lets this process in as the coordinator does, and names the same shards. Invariants: a
statement reaches the right rows wherever it is sent, as a worker that has lost a shard sends statements on to its new
node. What the coordinator said last is at most `FRESH_SECONDS` old, or no worker is used: so a process that cannot
reach the coordinator writes no longer to a worker that was replaced, or to a space that was dropped.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from urllib.parse import urlsplit

import asyncpg

from lazulite.engine.contract import EngineUnavailableError, StoreUnusableError
from lazulite.engine.postgres.citus.shard_map import LOOK, ShardMap
from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.errors import LOST, line
from lazulite.engine.postgres.sessions import Sessions
from lazulite.engine.postgres.settings import PostgresSettings

FRESH_SECONDS = 4.0
"""Less than the time after which a dropped space is emptied (see `drops`)."""
RETRY_SECONDS = 10.0
"""A worker that could not be joined is tried again so much later."""
_GROUP = "SELECT groupid FROM pg_catalog.pg_dist_local_group"


class Workers:
    """The joined workers.

    Args:
        settings: how to reach the coordinator: the workers have the same database, user and options.
        prepare: prepares a new connection.
        shards: where partitions are.
    """

    def __init__(
        self, settings: PostgresSettings, prepare: Callable[[Connection], Awaitable[None]], shards: ShardMap
    ) -> None:
        self._settings = settings
        self._prepare = prepare
        self._shards = shards
        self._joined: dict[str, Sessions] = {}
        """By address."""
        self._retry_s: dict[str, float] = {}
        """By address of a worker that could not be joined: when it may be tried again, on the loop's clock."""
        self._confirmed_s = -math.inf

    def of(self, node: int) -> Sessions | None:
        """Return the sessions with a node; None: its statements go to the coordinator."""
        return self._joined.get(self._shards.address(node)) if self._fresh else None

    @property
    def all_joined(self) -> bool:
        """Whether statements for each node go to it."""
        nodes = self._shards.nodes()
        return self._fresh and bool(nodes) and self._joined.keys() >= set(nodes.values())

    @property
    def _fresh(self) -> bool:
        return asyncio.get_running_loop().time() <= self._confirmed_s + FRESH_SECONDS

    def confirmed(self, asked_s: float) -> None:
        """Note that the coordinator has said where shards are and which spaces are dropped, asked at a loop's time."""
        self._confirmed_s = asked_s

    async def join(self) -> list[str]:
        """Join the nodes that are not joined yet, and leave nodes without shards.

        Returns:
            A line for people for each node that could not be joined.
        """
        nodes = self._shards.nodes()
        for address in self._joined.keys() - nodes.values():
            await self._joined.pop(address).close()
        now = asyncio.get_running_loop().time()
        due = [
            (node, address)
            for node, address in nodes.items()
            if address not in self._joined and now >= self._retry_s.get(address, now)
        ]
        failures = await asyncio.gather(*(self._join(*each) for each in due))
        return [failure for failure in failures if failure]

    async def _join(self, node: int, address: str) -> str:
        sessions = Sessions(replace(self._settings, dsn=self._dsn(address)), self._prepare)
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                connection = await sessions.open()
                same = await connection.fetchval(_GROUP) == node and self._shards.is_as(await connection.fetch(LOOK))
        except (*LOST, asyncpg.PostgresError, EngineUnavailableError, StoreUnusableError) as error:
            reason = line(error)
        else:
            sessions.keep(connection)
            if same:
                self._joined[address] = sessions
                return ""
            await sessions.close()
            reason = "it is another node, or names other shards"
        self._retry_s[address] = asyncio.get_running_loop().time() + RETRY_SECONDS
        return f"the worker {address} is used through the coordinator, which is slower: {reason}"

    def _dsn(self, address: str) -> str:
        parts = urlsplit(self._settings.dsn)
        return parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@{address}".removeprefix("@")).geturl()

    async def close(self) -> None:
        """Close all sessions."""
        await asyncio.gather(*(sessions.close() for sessions in self._joined.values()))
