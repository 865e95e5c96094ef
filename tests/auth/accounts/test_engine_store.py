"""Accounts in a database: the row keeps all that the file keeps, and every watch sees each change."""

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from lazulite.app.registry import SPACES
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account, AccountDirectory
from lazulite.auth.accounts.document import KEY_BYTES, Accounts, AccountsError, AccountStore, Change, StoredAccount
from lazulite.auth.accounts.engine_store import (
    PARTITION,
    POLL_SECONDS,
    POLL_TIMEOUT_SECONDS,
    ROW,
    AccountRow,
    AccountWatcher,
)
from lazulite.engine.commit import changing
from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.clock import system_clock
from lazulite.records.spaces import ACCOUNTS, SERVICE_PROPERTIES, TABLES
from tests.fuzz.memory import MemoryEngine

RANDOM = Random(7).randbytes
NAME = "postgresql://user@host/db"


class Stopped(AccountStore):
    """The row as a store for commands: each call runs a loop of its own."""

    def __init__(self, row: AccountRow) -> None:
        self._row = row

    @property
    def name(self) -> str:
        return self._row.name

    def stored(self) -> Accounts | None:
        async def read() -> Accounts | None:
            return self._row.decode(await self._row.read())

        return asyncio.run(read())

    def edit(self, change: Change) -> Accounts:
        return asyncio.run(self._row.edit(change))


class World:
    """One database, and a process that watches it."""

    def __init__(self, fixed: dict[str, Account] | None = None) -> None:
        self.engine = MemoryEngine(system_clock)
        self.row = AccountRow(self.engine, NAME)
        self.store = Stopped(self.row)
        self.reports: list[str] = []
        self.directory = AccountDirectory(fixed or {})
        self.watch = AccountWatcher(self.row, self.directory, self.reports.append)
        asyncio.run(self.watch.start())

    def poll(self) -> None:
        asyncio.run(self.watch.poll())

    def keys(self, name: str) -> tuple[bytes, ...]:
        account = self.directory.get(name)
        assert account is not None
        return account.keys

    def write(self, value: bytes | None) -> None:
        asyncio.run(self.engine.commit(ACCOUNTS, PARTITION, changing([ROW], lambda _, __: {ROW: value})))


def test_a_change_is_known_within_two_seconds() -> None:
    assert POLL_SECONDS < 2
    assert POLL_TIMEOUT_SECONDS <= 2


def test_its_space_is_its_own_and_no_table_cache_has_it() -> None:
    assert ACCOUNTS not in {*SPACES.watched, TABLES, SERVICE_PROPERTIES}


def test_edits_are_those_of_the_file() -> None:
    world = World()
    assert world.store.load() == {}
    first = world.store.add("orders", RANDOM)
    assert [len(key) for key in first] == [KEY_BYTES] * 2
    second = world.store.rotate("orders", 1, RANDOM)
    assert second[1] == first[1]
    assert second[0] != first[0]
    world.store.add("items", RANDOM)
    assert list(world.store.load()) == ["orders", "items"]
    for rejected, why in (
        (partial(world.store.add, "orders"), "exists already"),
        (partial(world.store.add, "Orders"), "3 to 24 characters"),
        (partial(world.store.rotate, "nobody", 1), "there is no account"),
    ):
        before = world.engine.writes
        with pytest.raises(AccountsError, match=why):
            rejected(RANDOM)
        assert world.engine.writes == before


def test_edits_at_the_same_time_are_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MemoryEngine(system_clock)
    read = engine.get

    async def get(space: int, partition: str, row: str) -> bytes | None:
        value = await read(space, partition, row)
        await asyncio.sleep(0)  # Others come in between.
        return value

    monkeypatch.setattr(engine, "get", get)
    row = AccountRow(engine, NAME)

    def added(name: str) -> Change:
        return lambda accounts: {**(accounts or {}), name: StoredAccount((RANDOM(8), RANDOM(8)))}

    async def edit_all() -> Accounts:
        made = await asyncio.gather(*(row.edit(added(f"account{number}")) for number in range(12)))
        assert [f"account{number}" in each for number, each in enumerate(made)] == [True] * 12
        return await row.load()

    assert len(asyncio.run(edit_all())) == 12


def test_whoever_watches_knows_and_keeps_the_objects_that_did_not_change() -> None:
    world = World()
    assert world.directory.get("devstoreaccount1") is DEVELOPMENT_ACCOUNT
    first = world.store.add("orders", RANDOM)
    assert world.directory.get("orders") is None
    world.poll()
    assert world.keys("orders") == first
    assert world.directory.get("devstoreaccount1") is None
    assert not world.directory.development
    before = world.directory.get("orders")
    world.store.add("items", RANDOM)
    world.poll()
    assert world.directory.get("orders") is before
    second = world.store.rotate("orders", 2, RANDOM)
    world.poll()
    assert world.directory.get("orders") is not before
    assert world.keys("orders") == second
    assert world.reports == []


def test_the_environment_wins() -> None:
    world = World({"orders": Account("orders", (b"mine",))})
    world.store.add("orders", RANDOM)
    world.poll()
    assert world.keys("orders") == (b"mine",)


def test_a_row_says_that_there_was_an_account_whatever_is_left() -> None:
    """So the development account never comes back, for a process that starts later either."""
    world = World()
    world.write(b'{"version": 1, "accounts": []}')
    later = AccountDirectory({})
    asyncio.run(AccountWatcher(world.row, later, world.reports.append).start())
    assert later.names() == []


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"{", "is damaged"),
        (b'{"version": 2}', "newer Lazulite"),
        (None, "is gone"),
    ],
)
def test_what_cannot_be_understood_changes_nothing_and_is_reported_once(value: bytes | None, why: str) -> None:
    world = World()
    good = world.store.add("orders", RANDOM)
    world.poll()
    world.write(value)
    for _ in range(3):
        world.poll()
        assert world.keys("orders") == good
        assert world.directory.get("devstoreaccount1") is None
    assert len(world.reports) == 1
    assert world.reports[0].endswith("; the accounts stay as they were")
    assert f"the list of accounts in {NAME}" in world.reports[0]
    assert why in world.reports[0]
    if value is not None:
        with pytest.raises(AccountsError, match=why):
            asyncio.run(AccountWatcher(world.row, AccountDirectory({}), print).start())
        with pytest.raises(AccountsError, match=why):
            world.store.add("items", RANDOM)


def away(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def get(*_: object) -> bytes | None:
        raise EngineUnavailableError("the database cannot serve now: secret")

    monkeypatch.setattr(world.engine, "get", get)


def hanging(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def get(*_: object) -> bytes | None:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    monkeypatch.setattr(world.engine, "get", get)
    world.watch._poll_timeout_seconds = 0


@pytest.mark.parametrize("ill", [away, hanging])
def test_while_the_database_is_away_nothing_changes_and_then_it_goes_on(
    ill: Callable[[World, pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    good = world.store.add("orders", RANDOM)
    world.poll()
    for outage in (1, 2):
        with monkeypatch.context() as patch:
            ill(world, patch)
            for _ in range(3):
                world.poll()
            assert world.keys("orders") == good
            said = f"the list of accounts in {NAME} cannot be read; the accounts stay as they were"
            assert world.reports == [said] * outage
        world.watch._poll_timeout_seconds = POLL_TIMEOUT_SECONDS
        good = world.store.rotate("orders", 1, RANDOM)
        world.poll()
        assert world.keys("orders") == good


def test_no_key_is_ever_reported() -> None:
    world = World()
    keys = world.store.add("orders", RANDOM)
    world.poll()
    stored = asyncio.run(world.row.read())
    assert stored is not None
    world.write(stored[:-20])
    world.poll()
    secrets = [base64.b64encode(key).decode() for key in keys]
    assert all(secret not in report for secret in secrets for report in world.reports)
    assert len(world.reports) == 1


def test_it_looks_again_and_again() -> None:
    world = World()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > 3:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(world.watch.run(sleep))
    assert slept == [POLL_SECONDS] * 4
