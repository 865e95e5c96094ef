"""Contents in a database: what several processes, lost windows, an hour and steps mean for them."""

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest

from lazulite.engine.content.contract import (
    WINDOW_BYTES,
    ContentDamagedError,
    ContentId,
    ContentMissingError,
    Owner,
)
from lazulite.engine.contract import EngineUnavailableError, SpaceDroppedError
from lazulite.engine.postgres.contents import statements, windows
from lazulite.engine.postgres.contents import store as store_module
from lazulite.engine.postgres.contents.store import PostgresContents
from lazulite.engine.postgres.engine import PostgresEngine
from tests.engine.content.test_contract import OWNER, get, put, sample

from .conftest import Open, by_statements, execute, statements_of

HEADS = "SELECT count(*) FROM lazulite.contents"
WINDOWS = "SELECT count(*) FROM lazulite.content_windows"
AGE = "UPDATE lazulite.contents SET since = now() - interval '61 minutes'"


class Rows:
    """The rows of a service."""

    def __init__(self, *contents: ContentId) -> None:
        self.contents = contents
        self.asked: list[Owner] = []

    async def references(self, owner: Owner) -> Collection[ContentId]:
        self.asked.append(owner)
        return self.contents


def counts() -> tuple[object, object]:
    return execute(HEADS)[0][0], execute(WINDOWS)[0][0]


@pytest.fixture(name="opened")
def _opened(open_engine: Open) -> PostgresEngine:
    return open_engine()


@pytest.fixture(name="store")
async def _store(opened: PostgresEngine) -> AsyncIterator[PostgresContents]:
    store = await opened.contents()
    yield store
    await store.close()


async def test_processes_share_their_contents(store: PostgresContents, open_engine: Open) -> None:
    other = await open_engine().contents()
    content = await put(store, b"abc")
    assert await get(other, content, 0, 3) == b"abc"
    assert await get(store, await other.copy(content, OWNER), 0, 3) == b"abc"
    await other.delete([content])
    with pytest.raises(ContentMissingError):
        await get(store, content, 0, 3)


async def test_what_is_an_hour_old_and_has_no_row_is_swept(store: PostgresContents, open_engine: Open) -> None:
    kept, wanted, _ = [await put(store, b"abc", Owner(5, name)) for name in ("kept", "wanted", "unwanted ü\0")]
    store.keep(kept)
    await store.close()
    unsealed = await store.create(Owner(5, "unsealed"))
    await unsealed.write(sample(2 * WINDOW_BYTES))

    sweeper, rows = await open_engine().contents(), Rows(wanted)
    assert await sweeper.sweep(rows.references) == 0
    assert rows.asked == []
    execute(AGE)
    young = await put(store, b"young")
    assert await sweeper.sweep(rows.references) == 2
    assert sorted(rows.asked) == [Owner(5, "unwanted ü\0"), Owner(5, "wanted")]
    assert counts() == (3, 3)
    for content in (kept, wanted, young):
        assert await get(store, content, 0, 3) == (b"you" if content is young else b"abc")
    assert await sweeper.sweep(rows.references) == 0
    assert len(rows.asked) == 2
    await unsealed.discard()


async def test_what_an_upload_renews_or_keeps_while_a_sweep_looks_for_its_row_stays(
    store: PostgresContents, open_engine: Open
) -> None:
    """A sweep lists what is an hour old, and reads the rows. Then it deletes what is still as old, and not kept."""
    committed, slow = await put(store, b"abc", Owner(5, "committed")), await store.create(Owner(5, "slow"))
    await slow.write(sample(WINDOW_BYTES))
    await slow._written()
    execute(AGE)

    async def references(_: Owner) -> Collection[ContentId]:
        store.keep(committed)
        await store.close()
        execute("UPDATE lazulite.contents SET since = now() WHERE state = 'open'")
        return ()

    assert await (await open_engine().contents()).sweep(references) == 0
    assert await get(store, committed, 0, 3) == b"abc"
    assert await get(store, await slow.seal(), 0, WINDOW_BYTES) == sample(WINDOW_BYTES)


@pytest.mark.parametrize("minutes", [0, 1, 30, 59])
async def test_a_sweep_leaves_an_upload_for_an_hour_after_its_seal(
    store: PostgresContents, open_engine: Open, minutes: int
) -> None:
    """The commit of its row may come at any time in that hour."""
    content = await put(store, b"abc")
    execute(f"UPDATE lazulite.contents SET since = now() - interval '{minutes} minutes'")
    assert await (await open_engine().contents()).sweep(Rows().references) == 0
    assert await get(store, content, 0, 3) == b"abc"


async def test_many_processes_sweep_at_once(store: PostgresContents, open_engine: Open) -> None:
    wanted, *_ = [await put(store, b"abc") for _ in range(5)]
    execute(AGE)
    sweepers = [await open_engine().contents() for _ in range(3)]
    removed = await asyncio.gather(*(sweeper.sweep(Rows(wanted).references) for sweeper in sweepers))
    assert max(removed) <= 4 <= sum(removed)
    assert counts() == (1, 1)


async def test_a_writer_that_passes_the_hour_gives_up(store: PostgresContents) -> None:
    late = await store.create(OWNER)
    await late.write(b"abc")
    execute(AGE)
    with pytest.raises(EngineUnavailableError, match="an hour"):
        await late.seal()
    await late.discard()
    assert counts() == (0, 0)


async def test_a_writer_that_was_swept_adds_nothing(store: PostgresContents) -> None:
    late = await store.create(OWNER)
    await late.write(sample(WINDOW_BYTES))
    execute(AGE)
    assert await store.sweep(Rows().references) == 1
    with pytest.raises(EngineUnavailableError):
        await late.write(sample(2 * WINDOW_BYTES))
    await late.discard()
    assert counts() == (0, 0)


async def test_a_slow_writer_has_another_hour(store: PostgresContents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "TOUCH_SECONDS", 0)
    slow = await store.create(OWNER)
    execute(AGE)
    await slow.write(sample(WINDOW_BYTES))
    assert await get(store, await slow.seal(), 0, WINDOW_BYTES) == sample(WINDOW_BYTES)


async def test_the_hour_of_a_commit_begins_with_the_seal(store: PostgresContents) -> None:
    slow = await store.create(OWNER)
    execute("UPDATE lazulite.contents SET since = now() - interval '59 minutes'")
    await slow.seal()
    assert execute("SELECT since > now() - interval '1 minute' FROM lazulite.contents") == [(True,)]


async def test_a_window_that_the_database_lost_is_missed(store: PostgresContents) -> None:
    one = await store.create(OWNER)
    await one.write(sample(2 * WINDOW_BYTES))
    await one._written()
    execute("DELETE FROM lazulite.content_windows WHERE number = 0")
    with pytest.raises(EngineUnavailableError, match="lost"):
        await one.seal()
    await one.discard()


@by_statements
async def test_only_the_seal_waits_for_the_disk(
    store: PostgresContents, opened: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = statements_of(opened, monkeypatch)
    await put(store, sample(WINDOW_BYTES))
    assert [("synchronous_commit" in statement) for statement in sent] == [False, True, False]
    [setting] = await opened._pool.fetch("SHOW synchronous_commit")
    assert tuple(setting) == ("on",)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("UPDATE lazulite.content_windows SET checksum = checksum + 1 WHERE number = 1", ContentDamagedError),
        ("UPDATE lazulite.content_windows SET data = '\\x00' WHERE number = 1", ContentDamagedError),
        ("DELETE FROM lazulite.content_windows WHERE number = 1", ContentDamagedError),
        ("DELETE FROM lazulite.contents", ContentMissingError),
    ],
)
async def test_damage_is_noticed(store: PostgresContents, change: str, error: type[Exception]) -> None:
    data = sample(3 * WINDOW_BYTES)
    content = await put(store, data)
    execute(change)
    with pytest.raises(error):
        await get(store, content, 0, len(data))


async def test_a_long_content_is_copied_and_deleted_in_steps(
    store: PostgresContents, opened: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "_STEP_WINDOWS", 2)
    data = sample(5 * WINDOW_BYTES + 1)
    content = await put(store, data)
    sent = statements_of(opened, monkeypatch)
    copy = await store.copy(content, Owner(6, "b"))
    assert len([statement for statement in sent if "SELECT $1::bigint" in statement]) == 3
    sent.clear()
    await store.delete([content])
    assert len([statement for statement in sent if "DELETE FROM lazulite.content_windows" in statement]) == 4
    assert await get(store, copy, 0, len(data)) == data
    assert counts() == (1, 6)


async def test_a_deletion_that_a_crash_interrupted_is_finished(
    store: PostgresContents, opened: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "_STEP_WINDOWS", 1)
    content = await put(store, sample(3 * WINDOW_BYTES))
    store.keep(content)
    await store.close()
    fetch = opened._pool.fetch_bulk

    async def fail(statement: str, *arguments: object, reads: bool = False, **more: Any) -> object:
        if statement == statements.DELETE:
            raise EngineUnavailableError("the database cannot serve now")
        return await fetch(statement, *arguments, reads=reads, **more)

    monkeypatch.setattr(opened._pool, "fetch_bulk", fail)
    with pytest.raises(EngineUnavailableError):
        await store.delete([content])
    monkeypatch.setattr(opened._pool, "fetch_bulk", fetch)
    assert counts() == (1, 0)
    execute(AGE)
    assert await store.sweep(Rows(content).references) == 1
    assert counts() == (0, 0)


async def test_a_dropped_space_is_emptied_of_its_contents(
    store: PostgresContents, opened: PostgresEngine, open_engine: Open
) -> None:
    other_engine = open_engine()
    other = await other_engine.contents()
    await put(store, sample(2 * WINDOW_BYTES))
    late = await other.create(OWNER)
    await put(store, b"abc", Owner(6, "a"))
    await store.drop(5)
    await (await other_engine._ensure_started()).drops.reload()
    with pytest.raises(SpaceDroppedError):
        await late.seal()
    execute("UPDATE lazulite.dropped SET since = now() - interval '1 hour', leased_until = now() - interval '1 second'")
    assert await opened.reclaim()
    assert counts() == (1, 1)


async def test_reading_holds_some_windows_only(
    store: PostgresContents, opened: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sample(20 * WINDOW_BYTES)
    content = await put(store, data)
    fetch, largest = opened._pool.fetch_bulk, 0

    async def measured(
        statement: str, *arguments: object, reads: bool = False, **more: Any
    ) -> list[tuple[object, ...]]:
        nonlocal largest
        found = [tuple(record) for record in await fetch(statement, *arguments, reads=reads, **more)]
        largest = max(largest, len(found))
        return found

    monkeypatch.setattr(opened._pool, "fetch_bulk", measured)
    assert await get(store, content, 1, len(data)) == data[1:]
    assert largest == 4


async def test_the_tables_are_added_to_an_older_database(open_engine: Open) -> None:
    await open_engine().start()
    execute("DROP TABLE lazulite.content_windows, lazulite.contents")
    engines = [open_engine() for _ in range(3)]
    stores = await asyncio.gather(*(engine.contents() for engine in engines))
    assert await get(stores[1], await put(stores[0], b"abc"), 0, 3) == b"abc"
