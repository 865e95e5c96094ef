"""`lazulite check` of a database: it reads every content, and names what is damaged, also while processes serve."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lazulite.cli import check, copy, main
from lazulite.engine.commit import changing
from lazulite.engine.content.contract import WINDOW_BYTES, Claim, ContentId, Owner
from lazulite.engine.contract import Slice
from lazulite.engine.postgres.contents.store import PostgresContents
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.migration.verification import StoreVerifier
from lazulite.protocol.clock import system_clock
from lazulite.records.spaces import COUNTERS, FIRST_FREE_SPACE
from tests.postgres.server import shared

from .note_store import NOTEBOOKS, REGISTRY, add_notes, make_location

TEXTS = {"a": b"first", "b": bytes(10 * WINDOW_BYTES + 5), "c": b"third", "d": b""}
Opened = tuple[PostgresEngine, PostgresContents]


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (check, copy):
        monkeypatch.setattr(module, "SPACES", REGISTRY)


@pytest.fixture(name="database")
def _database() -> Iterator[str]:
    name = shared().create_database()
    yield name
    shared().drop_database(name)


@asynccontextmanager
async def opened(database: str) -> AsyncIterator[Opened]:
    engine = PostgresEngine(PostgresSettings(dsn=shared().dsn(database)), system_clock)
    try:
        contents = await engine.contents()
        try:
            yield engine, contents
        finally:
            await contents.close()
    finally:
        await engine.close()


async def noted(database: str) -> dict[str, ContentId]:
    async with opened(database) as (engine, contents):
        return await add_notes(engine, contents, TEXTS)


def damage(database: str, statement: str, content: ContentId, *arguments: object) -> None:
    condition = "WHERE space = $1 AND content = $2"
    assert shared().execute(f"{statement} {condition} RETURNING 1", *content, *arguments, database=database)


def test_a_database_and_a_location_of_the_same_rows_have_one_checksum(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(make_location(tmp_path / "data", TEXTS))
    assert main(["copy", "--from", str(tmp_path / "data"), "--to", shared().dsn(database), "--silent"]) == 0
    capsys.readouterr()
    assert main(["check", "--engine", shared().dsn(database)]) == 0
    [name, *of_database] = capsys.readouterr().out.splitlines()
    assert name.startswith("database   postgresql://")
    assert main(["check", "--location", str(tmp_path / "data")]) == 0
    [_, *of_location] = capsys.readouterr().out.splitlines()
    assert "contents   4" in of_database
    assert "notes      4" in of_database
    assert of_database == of_location


def test_check_names_what_is_missing_or_damaged(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    notes = asyncio.run(noted(database))
    damage(database, "DELETE FROM lazulite.contents", notes["a"])
    flipped = "UPDATE lazulite.content_windows SET data = set_byte(data, 3, 1)"
    shared().execute(f"{flipped} WHERE content = $1 AND number = 9", notes["b"].number, database=database)
    damage(database, "UPDATE lazulite.contents SET length = 9", notes["c"])
    assert main(["check", "--engine", shared().dsn(database)]) == 1
    complaint = capsys.readouterr().err
    name = f"lazulite: notebook n{notes['a'].space}"
    for note, what in {"a": "there is no such content", "b": "the bytes of a content are", "c": "shorter"}.items():
        assert f"{name}, ('{note}', 'note'): content {notes[note].number} of space {notes[note].space}: " in complaint
        assert what in complaint
    assert "3 problems" in complaint


def test_check_rejects_a_database_without_a_store(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--engine", shared().dsn(database)]) == 1
    assert "there is no store" in capsys.readouterr().err


async def deleted(opened: Opened, space: int, content: ContentId) -> None:
    engine, contents = opened
    await engine.commit(space, "a", changing(["note"], lambda *_: {"note": None}))
    await contents.delete([content])


async def replaced(opened: Opened, space: int, content: ContentId) -> None:
    engine, contents = opened
    writer = await contents.create(Owner(space, "a"))
    number = (await writer.seal()).number
    await engine.commit(space, "a", changing(["note"], lambda *_: {"note": b"%d" % number}))
    await contents.delete([content])


@pytest.mark.parametrize("change", [deleted, replaced])
async def test_content_that_is_deleted_meanwhile_is_no_damage(
    database: str, change: Callable[[Opened, int, ContentId], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = await noted(database)
    async with opened(database) as (engine, contents):
        length = contents.length

        async def late(content: ContentId, claim: Claim | None = None) -> int:
            if content == notes["a"]:
                await change((engine, contents), content.space, content)
            return await length(content, claim)

        monkeypatch.setattr(contents, "length", late)
        findings = await StoreVerifier(engine, contents, REGISTRY).run(lambda _: None)
    assert (findings.problems, findings.contents) == ([], 4)


async def test_a_space_that_is_given_out_meanwhile_is_no_damage(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await noted(database)
    async with opened(database) as (engine, contents):
        scan = engine.scan

        async def late(space: int, *arguments: Any) -> AsyncGenerator[Slice, None]:
            if space == NOTEBOOKS:
                await add_notes(engine, contents, {})
            async with aclosing(scan(space, *arguments)) as slices:
                async for piece in slices:
                    yield piece

        monkeypatch.setattr(engine, "scan", late)
        findings = await StoreVerifier(engine, contents, REGISTRY).run(lambda _: None)
        await engine.commit(COUNTERS, "spaces", changing(["next"], lambda *_: {"next": FIRST_FREE_SPACE.to_bytes(8)}))
        monkeypatch.undo()
        lost = await StoreVerifier(engine, contents, REGISTRY).run(lambda _: None)
    assert findings.problems == []
    assert findings.counts["notebooks"] == 2
    assert "which is not its own" in lost.problems[0]
