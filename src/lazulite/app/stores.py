"""What a process serves from, opened: a location, memory, or a database, and the accounts that go with it.

The file modes of a location are checked before it is served. A user that may write the location can replace the
accounts and the store, and one that may read it needs no account. A location that every user may write is rejected.
What its group may write, and what others may read, is reported: a group is often the owner's own, and volumes of
containers are writable by one. What Lazulite makes itself is its owner's only.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from lazulite import __version__
from lazulite.app.channel import open_channel
from lazulite.app.checkpoints import Checkpoints
from lazulite.app.clock import (
    DatabaseClock,
    check_database_time,
    check_newest_timestamp,
    check_since_boot,
    note_boot,
    timestamp_clock,
)
from lazulite.app.commands import CHECKPOINT
from lazulite.app.registry import CODEC
from lazulite.app.stderr import report
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account, AccountDirectory
from lazulite.auth.accounts.engine_store import POLL_SECONDS, AccountRow, AccountWatcher
from lazulite.control.channel import Channel
from lazulite.engine.content.backup import deletions_held, link_files
from lazulite.engine.content.contract import ContentStore
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.contract import Clock, Engine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.remote.messages import Primary
from lazulite.engine.rocksdb.change_log import ChangeLog
from lazulite.engine.rocksdb.database import Failpoints
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.flush_stats import FlushObserver
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.engine.write_check import KEPT_SECONDS
from lazulite.migration.journal import reject_unfinished
from lazulite.protocol.clock import system_clock
from lazulite.settings.config import (
    BACKUP_MANIFEST,
    DEVELOPMENT_OFF,
    ConfigError,
    Settings,
    account_file,
    check_development_key,
    content_path,
    store_path,
)
from lazulite.table.indexes.build_notes import BuildCounts

_WRITABLE_BY_ALL = 0o002
_WRITABLE = 0o022
_ACCESSIBLE = 0o077

CACHE_TTL_SECONDS = 1.0
"""How long a row is cached that other processes may change: every process sees a change within two seconds."""


def reject_writable(location: Path) -> None:
    """Reject a location that every user may write to; it may be missing.

    Raises:
        ConfigError: it is one. The text says what to do.
    """
    for path in (location, *_secrets(location)):
        mode = _mode(path)
        if mode & _WRITABLE_BY_ALL:
            raise ConfigError(
                f"every user may write to {path} (mode {mode:04o}): run chmod go-w {path}, "
                "or pass a new directory below it as --location"
            )


def report_readable(location: Path, report: Callable[[str], None]) -> None:
    """Report files of a location that users other than its owner may read or write, one line each."""
    mode = _mode(location)
    if mode & _WRITABLE:
        report(f"users other than the owner may write to {location} (mode {mode:04o}): run chmod go-w {location}")
    for path in _secrets(location):
        mode = _mode(path)
        if mode & _ACCESSIBLE:
            report(f"users other than the owner may read {path} (mode {mode:04o}): run chmod go= {path}")


def _secrets(location: Path) -> tuple[Path, ...]:
    return store_path(location), content_path(location), account_file(location).path


def _mode(path: Path) -> int:
    """Return the permissions of a file; 0 if it is missing, cannot be looked at, or is on Windows, which has others."""
    if not hasattr(os, "getuid"):
        return 0
    try:
        return os.stat(path).st_mode & 0o7777
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class Store:
    """An opened engine with its accounts."""

    engine: Engine
    directory: AccountDirectory
    contents: ContentStore | None = None
    """Beside the rows; None: services that need contents cannot be served."""
    name: str = ""
    """Its name in messages for users."""
    statistics: Callable[[], Mapping[str, float]] | None = None
    """Returns its gauges; None for a database, which has its own."""
    counters: Callable[[], Mapping[str, float]] = dict
    """Returns what an engine on a database, or of a worker, has counted, under the names of metrics."""
    shared: bool = False
    """Whether other processes change it, unannounced."""
    primary: Primary | None = None
    """The process that has the store, of a worker; None: this process has it, or a database."""
    faults: Primary | None = None
    """The process that has the rules of faults, of a worker; None: this process has them."""
    present: Clock | None = None
    """The time of all processes that share it; None: that of this process."""
    away: Callable[[], Sequence[str]] = tuple
    """Returns the names of the database's parts that took no write at the last health check."""
    check_seconds: float = KEPT_SECONDS
    """How long the result of a health check stands; 0 in a worker, as the primary keeps it for all."""
    channel: Channel = field(default_factory=partial(Channel, __version__))
    """Takes the commands of this process."""
    builds: BuildCounts = field(default_factory=BuildCounts)
    """What the builds of indexes in this process have done."""
    poll_accounts: Callable[[], Awaitable[None]] | None = None
    """Has the directory follow a change of the stored accounts at once; None: the directory itself can."""

    def counts(self) -> Mapping[str, float]:
        """Return what is counted beside requests, under the names of metrics."""
        return {**self.counters(), **self.builds.readings()}


Seeder: TypeAlias = Callable[[Store], Awaitable[None]]
"""Puts initial data into a store before anything serves it. Raises `ConfigError`."""


@asynccontextmanager
async def seeded(store: Store, seeder: Seeder | None) -> AsyncIterator[None]:
    """Put the initial data, if any, into a store, and then run the block. Raises as `Seeder`."""
    if seeder is not None:
        await seeder(store)
    yield


class OpenLocation(NamedTuple):
    """What this process has of a location, or of memory."""

    engine: RocksEngine
    directory: AccountDirectory
    contents: ContentStore
    channel: Channel
    """See `Store`."""

    def store(self) -> Store:
        """Return it for services."""
        name = f"RocksDB, {self.engine.name}"
        return Store(
            self.engine,
            self.directory,
            self.contents,
            name,
            self.engine.statistics,
            channel=self.channel,
        )


@asynccontextmanager
async def open_store(
    settings: Settings,
    flush_observer: FlushObserver | None = None,
    *,
    clock: Clock = system_clock,
    failpoints: Failpoints | None = None,
    tuning: RocksSettings | None = None,
) -> AsyncIterator[Store]:
    """Yield the store of the settings, with its accounts checked.

    Args:
        settings: of the service.
        flush_observer: called with each flush of an embedded store.
        clock: the time now, for what is written.
        failpoints: functions that an embedded store calls at the steps of a flush.
        tuning: of an embedded store; None for its defaults.

    Raises:
        ConfigError: the store cannot be served, or the accounts are not for this address.
        AccountsError: the accounts cannot be read.
        EngineError: the store cannot be opened.
    """
    if settings.database is not None:
        async with _database_store(settings, settings.database, clock) as store:
            yield store
        return
    async with open_location(settings, flush_observer, clock=clock, failpoints=failpoints, tuning=tuning) as opened:
        yield opened.store()


@asynccontextmanager
async def open_location(
    settings: Settings,
    flush_observer: FlushObserver | None = None,
    *,
    clock: Clock = system_clock,
    failpoints: Failpoints | None = None,
    tuning: RocksSettings | None = None,
    change_log: ChangeLog | None = None,
) -> AsyncIterator[OpenLocation]:
    """Yield the engine of a location, or of memory, and what goes with it; backups can be made meanwhile.

    The arguments are those of `open_store`, and `change_log`, which receives each commit group that is durable.

    Raises:
        ConfigError: as `open_store`, and no file has been touched.
        AccountsError: likewise.
        EngineError: the store cannot be opened.
    """
    location = settings.location
    if location is not None:
        reject_writable(location)
    directory = location_accounts(location, settings.accounts)
    check_development_key(settings, directory)
    if location is not None and (location / BACKUP_MANIFEST).exists():
        raise ConfigError(
            f"{location} is a backup, which serving would change; copy it to a location with lazulite restore"
        )
    timestamps = timestamp_clock(settings, clock)
    if location is not None:
        report_readable(location, report)
        if not settings.accept_clock_jump:
            check_since_boot(location, timestamps.boot_tick)
    path = None if location is None else store_path(location)
    engine = RocksEngine.open(
        path, timestamps, tuning, flush_observer=flush_observer, failpoints=failpoints, change_log=change_log
    )
    contents = ContentMemory() if location is None else ContentFiles(content_path(location))
    try:
        if not settings.accept_clock_jump:
            check_newest_timestamp(engine.name, engine.newest_timestamp)
        if location is not None:
            note_boot(location, timestamps.boot_tick)
        await reject_unfinished(engine, engine.name)
        async with open_channel(settings) as channel, meanwhile(development_off(directory, report)):
            if location is not None:
                channel.register(CHECKPOINT, Checkpoints(location, partial(_checkpoint, engine)).lend)
            yield OpenLocation(engine, directory, contents, channel)
    finally:
        await engine.close()
        await contents.close()


async def _checkpoint(engine: RocksEngine, target: Path) -> None:
    """Make a checkpoint of a location in an empty directory of it: rows first, then their contents."""
    contents = content_path(target.parent)
    async with deletions_held(contents):
        await engine.checkpoint(store_path(target))
        await asyncio.to_thread(link_files, contents, content_path(target))


def location_accounts(location: Path | None, accounts: Mapping[str, Account]) -> AccountDirectory:
    """Return the accounts of the environment and of a location, as they are at each moment.

    Raises:
        AccountsError: the account file cannot be read.
    """
    return AccountDirectory(accounts, None if location is None else account_file(location), report)


@asynccontextmanager
async def _database_store(settings: Settings, database: PostgresSettings, clock: Clock) -> AsyncIterator[Store]:
    from lazulite.app.database import open_database  # noqa: PLC0415 - the import of an unused client would slow the start

    async with open_database(database, report, timestamp_clock(settings, clock), codec=CODEC) as engine:
        if not settings.accept_clock_jump:
            check_database_time(engine.name, await engine.unix_seconds())
        await reject_unfinished(engine, engine.name)
        directory = AccountDirectory(settings.accounts, report=report)
        watch = AccountWatcher(AccountRow(engine, engine.name), directory, report)
        await watch.start()
        check_development_key(settings, directory)
        present = DatabaseClock(engine.unix_seconds)
        await present.ask()
        async with (
            open_channel(settings) as channel,
            meanwhile(watch.run()),
            meanwhile(present.run()),
            meanwhile(development_off(directory, report)),
        ):
            contents = await engine.contents()
            name = f"PostgreSQL, {engine.name}"
            yield Store(
                engine,
                directory,
                contents,
                name,
                counters=engine.counters,
                shared=True,
                present=present,
                away=lambda: engine.failed_nodes,
                channel=channel,
                poll_accounts=watch.poll,
            )
            await contents.close()


async def development_off(
    directory: AccountDirectory,
    report: Callable[[str], None],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Report once that the development account is off, if the first account of the operator switches it off.

    Args:
        directory: the accounts.
        report: takes a line for people.
        sleep: waits so many seconds.
    """
    if not directory.implied:
        return
    try:
        while directory.implied:
            await sleep(POLL_SECONDS)
    finally:  # The process may stop before it has looked again.
        if directory.get(DEVELOPMENT_ACCOUNT.name) is None:
            report(DEVELOPMENT_OFF)


@asynccontextmanager
async def meanwhile(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run a task beside the block; report if it fails."""
    task = asyncio.create_task(work)
    task.add_done_callback(_report_failure)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def _report_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        report(f"a background task has failed: {type(task.exception()).__name__}; restart the server")
