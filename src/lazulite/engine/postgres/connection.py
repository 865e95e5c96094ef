"""Connections to the database: session settings, and the choice of the host that accepts writes."""

from typing import TypeAlias

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.postgres.settings import PostgresSettings

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

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


def _check_literals(connection: Connection) -> None:
    """Check a setting that each server reports when a session begins; a pooler may have dropped it."""
    if getattr(connection.get_settings(), "standard_conforming_strings", None) != "on":
        connection.terminate()
        raise StoreUnusableError(
            "the database does not let a session set standard_conforming_strings = on; without it Citus changes keys"
            " and values silently: set it for the database and the role, and in a pooler between"
        )
