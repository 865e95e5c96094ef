"""New connections: what each session begins with, and that it needs no look-up of types."""

import asyncio

import pytest
from asyncpg.connection import LoggedQuery

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.postgres import connection as module
from lazulite.engine.postgres import drops, scan, server_settings, sql_statements
from tests.engine.postgres.conftest import SCRIPTS, Open

STATEMENTS = [
    text
    for each in (sql_statements, drops, scan)
    for value in vars(each).values()
    for text in (value if isinstance(value, tuple) else (value,))
    if isinstance(text, str) and "$1" in text and "{" not in text
]
BY_STATEMENTS = {sql_statements.GET, sql_statements.READ, sql_statements.APPLY} | {
    text for text in STATEMENTS if text.lstrip().startswith("WITH version_row")
}
"""What Citus does not get."""


async def test_a_session_without_standard_strings_is_rejected(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a pooler that leaves out what a session asks for."""
    monkeypatch.setitem(module.SESSION_SETTINGS, "standard_conforming_strings", "off")
    engine = open_engine()
    for _ in range(2):
        with pytest.raises(StoreUnusableError, match="standard_conforming_strings"):
            await engine.start()
    assert engine._pool._sessions._idle == []


async def test_no_statement_has_types_looked_up(open_engine: Open) -> None:
    """Neither is it done on Citus, where a look-up takes a third of a second."""
    assert len(STATEMENTS) > 20
    engine = open_engine()
    await engine.start()
    sent: list[str] = []

    def note(query: LoggedQuery) -> None:
        sent.append(query.query)

    connection = await engine._pool._sessions._opener._connect()
    connection.add_query_logger(note)
    try:
        for text in [*STATEMENTS, server_settings._READ]:
            if len(SCRIPTS) > 1 or text not in BY_STATEMENTS:
                await connection.prepare(text)
        await asyncio.sleep(0)  # The logger is called in the loop's next iteration.
    finally:
        await connection.close()
    assert sent == []


async def test_an_array_of_each_kind_arrives_as_it_was_sent(open_engine: Open) -> None:
    engine = open_engine()
    await engine.start()
    keys, stamps = [b"", b"\\x41", bytes(range(256)), None], [0, -1, 2**63 - 1, None]
    async with engine._pool.connection() as connection:
        found = await connection.fetchrow("SELECT $1::bytea[], $2::bigint[]", keys, stamps)
    assert found is not None
    assert list(found) == [keys, stamps]
