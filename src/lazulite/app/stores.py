"""What a process serves from, opened: a location, memory, or a database, and the accounts that go with it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from lazulite.app.clock_checks import check_database_time, check_newest_stamp, check_since_boot, note_boot, stamp_clock
from lazulite.app.location_modes import refuse_writable, tell_readable
from lazulite.app.stderr import report
from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.engine_store import AccountRow, AccountWatch
from lazulite.engine.contract import Engine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.flush_stats import Meter
from lazulite.engine.write_check import KEPT_SECONDS
from lazulite.migration.journal import refuse_unfinished
from lazulite.server.control_socket import control
from lazulite.settings.config import BACKUP_LIST, ConfigError, Settings, account_file, check_development_key, store_path

REMEMBERED_SECONDS = 1.0
"""How long rows are remembered that other processes may change: what one has changed, all know within two seconds."""


@dataclass(frozen=True, slots=True)
class Store:
    """Rows, and who may come for them."""

    engine: Engine
    directory: AccountDirectory
    name: str = ""
    """What people are told it is."""
    statistics: Callable[[], Mapping[str, float]] | None = None
    """Its numbers; None if they are the database's to tell."""
    shared: bool = False
    """Whether other processes change it, unannounced."""
    check_seconds: float = KEPT_SECONDS
    """How long the result of a health check stands; 0 where the engine's owner keeps it for all."""


@asynccontextmanager
async def open_store(settings: Settings, meter: Meter | None = None) -> AsyncIterator[Store]:
    """Yield the store that the settings say, the accounts checked.

    Raises:
        ConfigError: it is none to be served, or the accounts are not for this address.
        AccountsError: the accounts cannot be read.
        EngineError: the store cannot be opened.
    """
    if settings.database is not None:
        async with _database_store(settings, settings.database) as store:
            yield store
        return
    async with open_location(settings, meter) as (engine, directory):
        yield Store(engine, directory, f"RocksDB, {engine.name}", engine.statistics)


@asynccontextmanager
async def open_location(
    settings: Settings, meter: Meter | None = None
) -> AsyncIterator[tuple[RocksEngine, AccountDirectory]]:
    """Yield the engine of a location, or of memory, and its accounts; backups can be made meanwhile.

    Raises:
        ConfigError: as `open_store`, and no file has been touched.
        AccountsError: likewise.
        EngineError: the store cannot be opened.
    """
    location = settings.location
    if location is not None:
        refuse_writable(location)
    directory = location_accounts(location, settings.accounts)
    check_development_key(settings, directory)
    if location is not None and (location / BACKUP_LIST).exists():
        raise ConfigError(
            f"{location} is a backup, which serving would change; lazulite restore makes a location of it"
        )
    clock = stamp_clock(settings)
    if location is not None:
        tell_readable(location, report)
        if not settings.accept_clock_jump:
            check_since_boot(location, clock.boot_tick)
    engine = RocksEngine.open(None if location is None else store_path(location), clock, meter=meter)
    try:
        if not settings.accept_clock_jump:
            check_newest_stamp(engine.name, engine.newest_stamp)
        if location is not None:
            note_boot(location, clock.boot_tick)
        await refuse_unfinished(engine, engine.name)
        async with control(location, engine.checkpoint, report):
            yield engine, directory
    finally:
        await engine.close()


def location_accounts(location: Path | None, accounts: Mapping[str, Account]) -> AccountDirectory:
    """Return the accounts of the environment and of a location, as they are at each moment.

    Raises:
        AccountsError: the account file cannot be read.
    """
    return AccountDirectory(accounts, None if location is None else account_file(location), report)


@asynccontextmanager
async def _database_store(settings: Settings, database: PostgresSettings) -> AsyncIterator[Store]:
    from lazulite.app.database import open_database  # noqa: PLC0415 - nobody waits for a client that is not used

    async with open_database(database, report, stamp_clock(settings)) as engine:
        if not settings.accept_clock_jump:
            check_database_time(engine.name, await engine.unix_seconds())
        await refuse_unfinished(engine, engine.name)
        directory = AccountDirectory(settings.accounts)
        watch = AccountWatch(AccountRow(engine, engine.name), directory, report)
        await watch.start()
        check_development_key(settings, directory)
        async with meanwhile(watch.run()):
            yield Store(engine, directory, f"PostgreSQL, {engine.name}", shared=True)


@asynccontextmanager
async def meanwhile(endless: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run something beside the block; if it ends by itself, people are told."""
    task = asyncio.create_task(endless)
    task.add_done_callback(_complain)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def _complain(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        report(f"what runs in the background has ended: {type(task.exception()).__name__}; restart the service")
