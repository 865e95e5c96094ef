"""One connection to the database."""

from typing import TypeAlias

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from lazulite.engine.postgres.settings import PostgresSettings

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


async def connect(settings: PostgresSettings) -> Connection:
    """Connect to that one of the hosts which takes writes.

    Raises:
        What the database and the way to it raise, see `failures`.
    """
    return await asyncpg.connect(
        settings.dsn,
        password=settings.password,
        timeout=settings.connect_seconds,
        command_timeout=settings.statement_seconds,
        target_session_attrs=SessionAttribute.read_write,
        server_settings={"application_name": "lazulite"},
    )
