"""`lazulite copy` to a database and back: the same bytes, the same checksums, wherever it was broken off."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import TableServiceClient, UpdateMode
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.app.registry import SPACES
from lazulite.auth.accounts.document import StoredAccount
from lazulite.auth.accounts.engine_store import AccountRow
from lazulite.cli import main
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.migration.compare import ComparedStore, StoreComparer
from lazulite.migration.copying import Timing, copy
from lazulite.migration.endpoint import Endpoint
from lazulite.migration.journal import Journal
from lazulite.migration.monotonic_clock import MonotonicClock
from lazulite.protocol.clock import system_clock
from lazulite.records.spaces import FIRST_FREE_SPACE, TABLES
from lazulite.settings.config import account_file, store_path
from lazulite.table.catalog import Catalog, Table
from lazulite.table.model.row import assemble, encode_keys
from tests.migration.stores import (
    FUTURE,
    NOW,
    BreakingEngine,
    Broken,
    Contents,
    MemoryAccounts,
    all_rows,
    contents,
    copied,
    entity,
    fill,
    put,
)
from tests.postgres.server import Postgres, shared
from tests.server_process import running

from .test_serve import rejected

SPACE = FIRST_FREE_SPACE
ACCOUNTS = {"one": StoredAccount((b"1", b"2"))}


@pytest.fixture(name="dsn", scope="module")
def _dsn() -> Iterator[str]:
    """A database for all of these tests, of which each begins with an empty one."""
    with shared().database() as dsn:
        yield dsn


@asynccontextmanager
async def database(dsn: str, clock: Callable[[], int]) -> AsyncIterator[PostgresEngine]:
    engine = PostgresEngine(PostgresSettings(dsn=dsn), clock)
    try:
        yield engine
    finally:
        await engine.close()


@asynccontextmanager
async def memory(clock: Callable[[], int] = lambda: NOW) -> AsyncIterator[RocksEngine]:
    engine = RocksEngine.open(None, clock)
    try:
        yield engine
    finally:
        await engine.close()


def emptied(dsn: str) -> str:
    Postgres(dsn).execute("DROP SCHEMA IF EXISTS lazulite CASCADE")
    return dsn


async def copy_all(source: Endpoint, target: Endpoint, clock: MonotonicClock) -> Journal:
    return await copy(source, target, SPACES, Timing(clock, count(step=10).__next__), lambda _: None)


@settings(deadline=None, max_examples=8)
@given(found=contents(), breaks=st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=2))
def test_copy_to_a_database_and_back_is_lossless(dsn: str, found: Contents, breaks: list[tuple[int, bool]]) -> None:
    async def check() -> None:
        clock = MonotonicClock(lambda: NOW)
        async with memory() as first, database(emptied(dsn), clock) as between, memory(clock) as last:
            await fill(first, found)
            source = Endpoint("first", first, MemoryAccounts(ACCOUNTS), ContentMemory())
            target = Endpoint("database", between, AccountRow(between, "database"), ContentMemory())
            for commits, applied in breaks:
                breaking = target._replace(engine=BreakingEngine(between, commits, applied=applied))
                try:
                    await copy_all(source, breaking, clock)
                except Broken:
                    continue
            await (await copy_all(source, target, clock)).end()
            assert await all_rows(between) == copied(found)
            back = Endpoint("last", last, MemoryAccounts(), ContentMemory())
            await (await copy_all(target, back, clock)).end()
            assert await all_rows(last) == copied(found)
            assert await back.accounts.load() == ACCOUNTS
            comparing = StoreComparer(
                ComparedStore(first, ContentMemory()), ComparedStore(between, ContentMemory()), SPACES, lambda _: None
            )
            assert all([each.equal async for each in comparing.run(None)])
            assert comparing.totals().equal

    asyncio.run(check())


async def test_a_copy_of_a_store_with_a_raised_format_has_one_too(dsn: str) -> None:
    clock = MonotonicClock(lambda: NOW)
    for raised in (False, True):
        async with memory() as first, database(emptied(dsn), clock) as between, memory(clock) as last:
            if raised:
                await first.raise_format()
            source, target, back = (
                Endpoint(name, engine, MemoryAccounts(), ContentMemory())
                for name, engine in (("first", first), ("database", between), ("last", last))
            )
            await (await copy_all(source, target, clock)).end()
            await (await copy_all(target, back, clock)).end()
            assert await between.has_raised_format() is raised
            assert await last.has_raised_format() is raised


async def test_new_timestamps_of_a_database_exceed_copied_ones(dsn: str) -> None:
    clock = MonotonicClock(lambda: NOW)
    catalog = {TABLES: {("one", "t"): Table("t", SPACE).to_bytes()}}
    newest = FUTURE + 299
    rows = {(partition, f"{row:03}"): entity(newest - row) for partition in ("first", "second") for row in range(300)}
    rows["single", "r"] = entity(newest)
    async with memory() as first, database(emptied(dsn), clock) as target:
        await fill(first, {**catalog, SPACE: rows})
        source = Endpoint("first", first, MemoryAccounts(), ContentMemory())
        await copy_all(source, Endpoint("database", target, MemoryAccounts(), ContentMemory()), clock)
    async with database(dsn, lambda: NOW) as another_process:
        for partition in ("first", "second", "single"):
            assert await put(another_process, SPACE, partition, "new", b"") > newest


# The command.


class Lazulite:
    """The command line, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str | Path, **variables: str) -> tuple[int, str, str]:
        """Run a command; return its exit code, and what it printed."""
        with self._monkeypatch.context() as patches:
            for name, value in variables.items():
                patches.setenv(name, value)
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as ended:
                code = int(ended.code or 0)
        return code, *self._capsys.readouterr()


@pytest.fixture(name="lazulite")
def _lazulite(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lazulite:
    return Lazulite(capsys, monkeypatch)


async def fill_location(location: Path) -> None:
    engine = RocksEngine.open(store_path(location), system_clock)
    try:
        table = await Catalog(engine).create("orders", "Orders")
        for number in range(30):
            value = assemble(system_clock(), encode_keys(f"p{number:02}", "é"), "")
            await put(engine, table.space, f"p{number:02}", "é", value)
    finally:
        await engine.close()
    account_file(location).add("orders", lambda count: b"k" * count)


def contents_of(printed: str) -> Mapping[str, str]:
    """Return what the command printed of a store, but for its place."""
    lines = [line.split(maxsplit=1) for line in printed.splitlines() if not line.startswith(("from ", "to "))]
    return dict(line for line in lines)


def test_copy_command_to_a_database_and_back_shows_no_password(dsn: str, tmp_path: Path, lazulite: Lazulite) -> None:
    emptied(dsn)
    source, back = tmp_path / "source", tmp_path / "back"
    asyncio.run(fill_location(source))
    password = urlsplit(dsn).password or "none"
    bare = dsn.replace(f":{password}@", "@")
    code, there, complaint = lazulite("copy", "--from", source, "--to", bare, LAZULITE_TO_PASSWORD=password)
    assert (code, complaint) == (0, "")
    assert there.splitlines()[-1] == "no difference found"
    code, again, complaint = lazulite("copy", "--from", source, "--to", dsn, "--verify-only")
    assert (code, complaint) == (0, "")
    assert again == there
    (tmp_path / "password").write_text(password, encoding="utf-8")
    variables = {"LAZULITE_FROM_PASSWORD_FILE": str(tmp_path / "password")}
    code, printed, complaint = lazulite("copy", "--from", bare, "--to", back, **variables)
    assert (code, complaint) == (0, "")
    assert contents_of(printed) == contents_of(there)
    assert f"checksum   {contents_of(there)['checksum']}" in lazulite("check", "-l", back)[1]
    assert account_file(back).load() == account_file(source).load()
    assert password not in there + again + printed
    code, _, complaint = lazulite("copy", "--from", source, "--to", dsn)
    assert (code, complaint) == (1, f"lazulite: {bare} is not empty; a copy needs an empty target\n")


def test_databases_without_a_store_are_rejected_and_unchanged(dsn: str, tmp_path: Path, lazulite: Lazulite) -> None:
    emptied(dsn)
    source = tmp_path / "source"
    asyncio.run(fill_location(source))
    password = urlsplit(dsn).password or "none"
    bare = dsn.replace(f":{password}@", "@")
    for arguments in (("--from", dsn, "--to", tmp_path / "new"), ("--from", source, "--to", dsn, "--verify-only")):
        assert lazulite("copy", *arguments) == (1, "", f"lazulite: {bare}: there is no store in this database\n")
    assert not (tmp_path / "new").exists()
    assert Postgres(dsn).execute("SELECT 1 FROM pg_namespace WHERE nspname = 'lazulite'") == []
    assert lazulite("copy", "--from", dsn, "--to", dsn)[::2] == (1, "lazulite: --from and --to are the same store\n")
    elsewhere = urlsplit(dsn)._replace(netloc=f"nobody:secret@{urlsplit(dsn).netloc.rpartition('@')[2]}").geturl()
    for flags in (("--from", source, "--to"), ("--to", tmp_path / "new", "--from")):
        code, printed, complaint = lazulite("copy", *flags, elsewhere)
        assert (code, printed) == (1, "")
        assert complaint.startswith("lazulite: postgresql://nobody@")
        assert "secret" not in complaint
        assert complaint.count("\n") == 1
    code, _, complaint = lazulite("copy", "--from", source, "--to", "postgresql://u:wrong-secret@h:port/db")
    assert code == 2
    assert "secret" not in complaint


# The service.


def test_database_serves_copied_entities_and_rejects_an_unfinished_copy(
    dsn: str, tmp_path: Path, lazulite: Lazulite
) -> None:
    emptied(dsn)
    source, back = tmp_path / "source", tmp_path / "back"
    with running("--silent", "-l", str(source)) as server, connected(server.lines[1]) as service:
        table = service.create_table("Orders")
        for row in ("é", "other"):
            table.create_entity({"PartitionKey": "p", "RowKey": row, "Total": 12.5})
        first = table.get_entity("p", "é")
        assert server.stop()[0] == 0
    asyncio.run(half_a_copy(dsn))
    for flags in ((), ("--workers", "2")):
        assert "is an unfinished copy; finish it" in rejected(1, "serve", "--engine", dsn, "--table-port", "0", *flags)
    emptied(dsn)
    assert lazulite("copy", "--from", source, "--to", dsn)[::2] == (0, "")
    with running("--silent", "--engine", dsn) as server, connected(server.lines[1]) as service:
        table = service.get_table_client("Orders")
        second = table.get_entity("p", "é")
        assert (dict(second), second.metadata) == (dict(first), first.metadata)
        etag = second.metadata["etag"]
        table.update_entity(second, UpdateMode.REPLACE, etag=etag, match_condition=MatchConditions.IfNotModified)
        with pytest.raises(ResourceModifiedError):
            table.update_entity(second, UpdateMode.REPLACE, etag=etag, match_condition=MatchConditions.IfNotModified)
        third = table.get_entity("p", "é")
        assert str(third.metadata["etag"]) > str(etag)
        service.create_table("Another")
        assert server.stop()[0] == 0
    assert lazulite("copy", "--from", dsn, "--to", back)[::2] == (0, "")
    with running("--silent", "-l", str(back)) as server, connected(server.lines[1]) as service:
        fourth = service.get_table_client("Orders").get_entity("p", "é")
        assert (dict(fourth), fourth.metadata) == (dict(third), third.metadata)
        assert sorted(table.name for table in service.list_tables()) == ["Another", "Orders"]
        assert server.stop()[0] == 0


def connected(connection_string: str) -> TableServiceClient:
    return TableServiceClient.from_connection_string(connection_string.strip(), retry_total=0)


async def half_a_copy(dsn: str) -> None:
    async with database(dsn, system_clock) as engine:
        await Journal.begin(engine, "elsewhere")
