"""The way to the database, and one connection."""

from typing import TypeAlias

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from lazulite.engine.postgres.settings import PostgresSettings

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


class Way:
    """Finds that one of the hosts which takes writes, and tries it first from then on.

    Each host has its own time to answer: one that is silent, as a machine that lost its network is, must not keep
    anybody from the others.
    """

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._dsns = list(settings.dsns)

    async def connect(self) -> Connection:
        """Connect.

        Raises:
            What the database and the way to it raise, see `failures`; of several hosts, that of the last one tried.
        """
        *others, last = self._dsns
        for dsn in others:
            try:
                return await self._connect(dsn)
            except (OSError, asyncpg.PostgresError, asyncpg.InternalClientError):
                continue
        return await self._connect(last)

    async def _connect(self, dsn: str) -> Connection:
        connection = await asyncpg.connect(
            dsn,
            password=self._settings.password,
            timeout=self._settings.connect_seconds,
            command_timeout=self._settings.statement_seconds,
            max_cached_statement_lifetime=0,  # There are few; and one that ends is let go of without a time limit.
            target_session_attrs=SessionAttribute.read_write,
            server_settings={"application_name": "lazulite"},
        )
        self._dsns.sort(key=lambda each: each != dsn)
        return connection
