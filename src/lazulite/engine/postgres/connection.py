"""Connections to the database: session settings, and the choice of the host that accepts writes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from lazulite.engine.contract import EngineUnavailableError, StoreUnusableError
from lazulite.engine.postgres.errors import LOST, line
from lazulite.engine.postgres.settings import PostgresSettings

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_RECONNECT_SECONDS = 0.25

SESSION_SETTINGS = {"application_name": "lazulite", "standard_conforming_strings": "on"}
"""Settings of each session, whatever those of the database or the role are."""

_ARRAYS = [
    {"oid": oid, "name": f"_{name}", "ns": "pg_catalog", "elemtype": element, "elemdelim": ","}
    | dict.fromkeys(("kind", "basetype", "range_subtype", "attrtypoids", "attrnames", "elemtype_name"))
    for oid, name, element in ((1001, "bytea", 17), (1016, "int8", 20))
]
"""The array types of the statements, by PostgreSQL's fixed numbers, in the form of asyncpg's type introspection.

That introspection costs two to four statements per connection, and a third of a second on a Citus coordinator."""


class PrimaryConnector:
    """Connects to the host that accepts writes, and tries it first from then on.

    Each host has its own time limit, so that a silent host, such as a machine without network, does not block the
    others.
    """

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._dsns = list(settings.dsns)

    async def connect(self) -> Connection:
        """Connect.

        Raises:
            OSError, asyncpg.PostgresError, asyncpg.InternalClientError: the last host cannot be connected to.
            StoreUnusableError: the session lacks a required setting.
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
            max_cached_statement_lifetime=0,  # There are few; and asyncpg ends an expired one without a time limit.
            target_session_attrs=SessionAttribute.read_write,
            server_settings=SESSION_SETTINGS,
        )
        _check_literals(connection)
        connection.get_settings().register_data_types(_ARRAYS)
        self._dsns.sort(key=lambda each: each != dsn)
        return connection


class ConnectionOpener:
    """Opens connections that are ready for use.

    While the database cannot be reached, one caller in `_RECONNECT_SECONDS` tries, and the others fail at once.

    Args:
        settings: the database.
        prepare: prepares a new connection.
    """

    def __init__(self, settings: PostgresSettings, prepare: Callable[[Connection], Awaitable[None]]) -> None:
        self._seconds = settings.connect_seconds
        self._connector = PrimaryConnector(settings)
        self._prepare = prepare
        self._unreachable_until = 0.0
        self._unreachable = ""

    async def open(self) -> Connection:
        """Connect and prepare.

        Raises:
            EngineUnavailableError: the database was not reached a moment ago.
            OSError, asyncpg.PostgresError, asyncpg.InternalClientError: it is not reached now.
            StoreUnusableError: the session lacks a required setting.
        """
        now = asyncio.get_running_loop().time()
        if now < self._unreachable_until:
            raise EngineUnavailableError(self._unreachable)
        self._unreachable_until = now + _RECONNECT_SECONDS if self._unreachable else 0.0
        try:
            connection = await self._connect()
        except (*LOST, asyncpg.PostgresError) as error:
            self._unreachable = f"the database cannot be reached: {line(error)}"
            self._unreachable_until = asyncio.get_running_loop().time() + _RECONNECT_SECONDS
            raise
        self._unreachable, self._unreachable_until = "", 0.0
        return connection

    async def _connect(self) -> Connection:
        connection = await self._connector.connect()
        try:
            async with asyncio.timeout(self._seconds):
                await self._prepare(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection


def _check_literals(connection: Connection) -> None:
    """Check a setting that each server reports when a session begins; a pooler may have dropped it."""
    if getattr(connection.get_settings(), "standard_conforming_strings", None) != "on":
        connection.terminate()
        raise StoreUnusableError(
            "the database does not let a session set standard_conforming_strings = on; without it Citus changes keys"
            " and values silently: set it for the database and the role, and in a pooler between"
        )
