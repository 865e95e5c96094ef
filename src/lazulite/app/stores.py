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
from lazulite.cli.backup_manifest import LIST
from lazulite.engine.contract import Clock, Engine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb.database import Failpoints
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.flush_stats import Meter
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.engine.write_check import KEPT_SECONDS
from lazulite.migration.journal import refuse_unfinished
from lazulite.protocol.clock import system_clock
from lazulite.server.control_socket import control
from lazulite.settings.config import ConfigError, Settings, account_file, check_development_key, store_path

REMEMBERED_SECONDS = 1.0
"""How long rows are remembered that other processes may change: what one has changed, all know within two seconds."""


@dataclass(frozen=True, slots=True)
class Store:
    """An opened engine with its accounts."""

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
async def open_store(
    settings: Settings,
    meter: Meter | None = None,
    *,
    clock: Clock = system_clock,
    failpoints: Failpoints | None = None,
    tuning: RocksSettings | None = None,
) -> AsyncIterator[Store]:
    """Yield the store that the settings say, the accounts checked.

    Args:
        settings: of the service.
        meter: told of each flush of an embedded store.
        clock: the time now, for what is written.
        failpoints: functions that an embedded store calls at the steps of a flush.
        tuning: of an embedded store; None for its defaults.

    Raises:
        ConfigError: it is none to be served, or the accounts are not for this address.
        AccountsError: the accounts cannot be read.
        EngineError: the store cannot be opened.
    """
    if settings.database is not None:
        async with _database_store(settings, settings.database, clock) as store:
            yield store
        return
    async with open_location(settings, meter, clock=clock, failpoints=failpoints, tuning=tuning) as (engine, directory):
        yield Store(engine, directory, f"RocksDB, {engine.name}", engine.statistics)


@asynccontextmanager
async def open_location(
    settings: Settings,
    meter: Meter | None = None,
    *,
    clock: Clock = system_clock,
    failpoints: Failpoints | None = None,
    tuning: RocksSettings | None = None,
) -> AsyncIterator[tuple[RocksEngine, AccountDirectory]]:
    """Yield the engine of a location, or of memory, and its accounts; backups can be made meanwhile.

    The arguments are those of `open_store`.

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
    if location is not None and (location / LIST).exists():
        raise ConfigError(
            f"{location} is a backup, which serving would change; copy it to a location with lazulite restore"
        )
    stamps = stamp_clock(settings, clock)
    if location is not None:
        tell_readable(location, report)
        if not settings.accept_clock_jump:
            check_since_boot(location, stamps.boot_tick)
    path = None if location is None else store_path(location)
    engine = RocksEngine.open(path, stamps, tuning, meter=meter, failpoints=failpoints)
    try:
        if not settings.accept_clock_jump:
            check_newest_stamp(engine.name, engine.newest_stamp)
        if location is not None:
            note_boot(location, stamps.boot_tick)
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
async def _database_store(settings: Settings, database: PostgresSettings, clock: Clock) -> AsyncIterator[Store]:
    from lazulite.app.database import open_database  # noqa: PLC0415 - nobody waits for a client that is not used

    async with open_database(database, report, stamp_clock(settings, clock)) as engine:
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
        report(f"a background task has failed: {type(task.exception()).__name__}; restart the server")
