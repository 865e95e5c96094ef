"""The tables: created once, by the first process, and left alone if they are not this program's."""

import asyncio

import asyncpg
import pytest

from lazulite.engine.commit import changing
from lazulite.engine.contract import EngineUnavailableError, StoreUnusableError
from lazulite.engine.postgres import schema
from lazulite.engine.postgres.settings import PostgresSettings
from tests.engine.postgres.conftest import Open, execute


async def test_many_processes_may_be_the_first(open_engine: Open) -> None:
    engines = [open_engine() for _ in range(6)]
    await asyncio.gather(*(engine.start() for engine in engines))
    stamps = await asyncio.gather(
        *(engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"x"})) for engine in engines)
    )
    assert len(set(stamps)) == 6


@pytest.mark.parametrize("state", ["42710", "42P07", "23505"])
async def test_a_process_that_meets_another_one_in_any_step_is_not_the_first(
    open_engine: Open, settings: PostgresSettings, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    await open_engine().start()
    execute("DROP TABLE lazulite.content_windows, lazulite.contents")
    monkeypatch.setattr(schema, "_CONTENT_TABLES", f"DO $$ BEGIN RAISE EXCEPTION SQLSTATE '{state}'; END $$")
    connection = await asyncpg.connect(settings.dsn)
    try:
        await schema.add_content_tables(connection, citus=False, tuned=False)
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("version", "word"), [(schema.WITH_INDEXES + 1, "newer"), (schema.FORMAT - 1, "lazulite upgrade")]
)
async def test_tables_of_another_version_are_rejected(open_engine: Open, version: int, word: str) -> None:
    await open_engine().start()
    execute("UPDATE lazulite.store SET value = $1 WHERE name = 'format'", str(version))
    with pytest.raises(StoreUnusableError, match=word):
        await open_engine().start()


async def test_a_schema_of_somebody_else_is_rejected(open_engine: Open) -> None:
    execute("CREATE SCHEMA lazulite")
    with pytest.raises(StoreUnusableError, match="not Lazulite's"):
        await open_engine().start()


async def test_an_upgrade_goes_step_by_step(
    open_engine: Open, settings: PostgresSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreUnusableError, match="no tables"):
        await schema.upgrade(settings)
    await open_engine().start()
    assert await schema.upgrade(settings) == (schema.FORMAT, schema.FORMAT)
    monkeypatch.setattr(schema, "FORMAT", schema.FORMAT + 2)
    monkeypatch.setattr(schema, "WITH_INDEXES", schema.FORMAT)
    steps = {schema.FORMAT - 2: "CREATE TABLE lazulite.one (a int)", schema.FORMAT - 1: "DROP TABLE lazulite.one"}
    monkeypatch.setattr(schema, "_UPGRADES", steps)
    with pytest.raises(StoreUnusableError, match="lazulite upgrade"):
        await open_engine().start()
    assert await schema.upgrade(settings) == (schema.FORMAT - 2, schema.FORMAT)
    await open_engine().start()
    monkeypatch.undo()
    execute("UPDATE lazulite.store SET value = $1 WHERE name = 'format'", str(schema.WITH_INDEXES + 1))
    with pytest.raises(StoreUnusableError, match="newer"):
        await schema.upgrade(settings)


async def test_indexes_raise_the_format_and_older_programs_reject_it(
    open_engine: Open, settings: PostgresSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine()
    await engine.start()
    assert not await engine.has_raised_format()
    for _ in range(2):
        await engine.raise_format()
        assert await engine.has_raised_format()
        assert execute("SELECT value FROM lazulite.store WHERE name = 'format'") == [("2",)]
    await open_engine().start()
    assert await schema.upgrade(settings) == (schema.WITH_INDEXES, schema.WITH_INDEXES)
    monkeypatch.setattr(schema, "WITH_INDEXES", schema.FORMAT)
    with pytest.raises(StoreUnusableError, match=r"of format 2, newer than this program knows \(1\)"):
        await open_engine().start()


async def test_a_newer_format_is_not_lowered(open_engine: Open) -> None:
    engine = open_engine()
    await engine.start()
    execute("UPDATE lazulite.store SET value = '7' WHERE name = 'format'")
    await engine.raise_format()
    assert execute("SELECT value FROM lazulite.store WHERE name = 'format'") == [("7",)]


async def test_a_database_that_is_not_there_says_so_without_the_password() -> None:
    nowhere = PostgresSettings(dsn="postgresql://somebody:secret@127.0.0.1:1/nothing")
    assert nowhere.name == "postgresql://somebody@127.0.0.1:1/nothing"
    assert "secret" not in repr(nowhere)
    with pytest.raises(EngineUnavailableError) as caught:
        await schema.upgrade(nowhere)
    assert "secret" not in str(caught.value)
