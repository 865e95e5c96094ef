"""A server that is a little different but keeps all its promises: `python -m tests.torture.variants NAME serve …`."""

import asyncio
import itertools
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

from lazulite.analytics.log_writer import LogWriter
from lazulite.analytics.metrics_writer import MetricsWriter
from lazulite.app import services, worker, worker_supervisor
from lazulite.blob.requests.call import Context
from lazulite.cli import main
from lazulite.engine.content.contract import ContentId
from lazulite.engine.content.files import FileWriter
from lazulite.engine.postgres.contention import Contention
from lazulite.engine.postgres.contents import statements
from lazulite.engine.postgres.contents.store import RowWriter
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb import engine as rocksdb
from lazulite.engine.rocksdb import replica
from lazulite.engine.rocksdb.change_log import ChangeLog, ChangeLogReader, ChangeRecord
from lazulite.engine.rocksdb.database import OpenDatabase
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.server.server import Sockets
from lazulite.service import properties
from lazulite.service.properties import Logging, Metrics, ServiceProperties
from lazulite.settings import database as database_settings

from . import stepping_clock

SYNC_SECONDS = 0.1
HASTY_SECONDS = 20
"""More than any commit takes, on a busy machine too."""
BUSY_SECONDS = 0.1
SLOW_CHANGES, CHANGE_SECONDS = 0.2, 0.004
"""The share of changes in shared memory that take longer, and how long at most."""
PAUSE_SECONDS, PAUSED_EACH = 1.2, 20
"""Longer than the second between two sweeps of a database, and so seldom that clients get on."""


def small_buffers() -> None:
    """Let RocksDB write tables, and compact them, all the time."""
    vars(rocksdb)["RocksSettings"] = partial(RocksSettings, write_buffer_bytes=256 << 10, write_bytes_max=4 << 10)


def slow_syncs() -> None:
    """Let a sync take as long as on a slow disk, so that commits wait in the open group nearly all the time."""
    sync = OpenDatabase._sync

    def slow_sync(self: OpenDatabase) -> None:
        time.sleep(SYNC_SECONDS)
        sync(self)

    OpenDatabase._sync = slow_sync  # type: ignore[method-assign]


def slow_changes() -> None:
    """Let a change of the shared memory, and the reading of one, take a moment now and then; scan row by row."""
    dice = random.Random(os.getpid())
    write, record = ChangeLog._write, ChangeLogReader._record

    def pause() -> None:
        if dice.random() < SLOW_CHANGES:
            time.sleep(dice.random() * CHANGE_SECONDS)

    def slow_write(self: ChangeLog, position: int, data: bytes) -> None:
        half = len(data) // 2
        write(self, position, data[:half])
        pause()
        write(self, position + half, data[half:])
        pause()

    def slow_record(self: ChangeLogReader, position: int) -> ChangeRecord:
        pause()
        found = record(self, position)
        pause()
        return found

    vars(replica)["RocksSettings"] = partial(RocksSettings, slice_rows_max=1)
    ChangeLog._write = slow_write  # type: ignore[method-assign]
    ChangeLogReader._record = slow_record  # type: ignore[method-assign]


def scripts() -> None:
    """Write to a database by scripts, as on Citus; with a stepping clock."""
    vars(database_settings)["PostgresSettings"] = partial(PostgresSettings, scripts=True)
    stepping_clock.install()


def peers() -> None:
    """Forward each commit to a database to its owner, found beside the clocks; with a stepping clock."""
    directory = Path(os.environ[stepping_clock.VARIABLE]).parent / "peers"
    directory.mkdir(mode=0o700, exist_ok=True)
    vars(database_settings)["PostgresSettings"] = partial(vars(database_settings)["PostgresSettings"], peers=directory)
    Contention.is_contended = lambda *_: True  # type: ignore[method-assign]
    stepping_clock.install()


def hasty_sweeps() -> None:
    """Sweep contents every second, and after seconds where it would be an hour; with a stepping clock."""
    for name, statement in vars(statements).items():
        if name.isupper():
            vars(statements)[name] = statement.replace("'1 hour'", f"'{HASTY_SECONDS} seconds'")
    vars(services)["TAKE_OVER_SECONDS"] = 1
    stepping_clock.install()


def busy_maintenance() -> None:
    """Look for what dead processes left, and do what is due, many times a second; what is due also before a start."""
    vars(services)["TAKE_OVER_SECONDS"] = BUSY_SECONDS
    maintenance, start = services.maintenance, Context.start

    def often(
        maintained: services.MaintainedService, _: float, schedule: services.Schedule
    ) -> AbstractAsyncContextManager[None]:
        return maintenance(maintained, BUSY_SECONDS, schedule)

    async def start_and_maintain(self: Context) -> None:
        await start(self)
        if self.owns_store:
            await self.maintain()

    for module in (services, worker_supervisor):
        vars(module)["maintenance"] = often
    Context.start = start_and_maintain  # type: ignore[method-assign]


def paused_uploads() -> None:
    """Let a pause come between the seal of a content and the commit of its row, of every few contents."""
    for writer in (FileWriter, RowWriter):
        _pause_after_seal(writer)


def _pause_after_seal(writer: type[FileWriter] | type[RowWriter]) -> None:
    seal, numbers = writer.seal, itertools.count()

    async def seal_and_pause(self: Any) -> ContentId:
        content = await seal(self)
        if next(numbers) % PAUSED_EACH == 0:
            await asyncio.sleep(PAUSE_SECONDS)
        return content

    writer.seal = seal_and_pause  # type: ignore[method-assign]


def in_workers() -> None:
    """Let the workers of `tests.torture.mutations` differ as their primary does."""
    command, (_, names, *_) = worker.command, sys.argv
    names = "+".join(each for each in names.split("+") if each != in_workers.__name__)

    def differing(lock: int, log: int | None, store: int, passage: int, sockets: Sequence[Sockets]) -> Sequence[str]:
        python, option, _, *arguments = command(lock, log, store, passage, sockets)
        return [python, option, "tests.torture.mutations.worker", names, *arguments]

    worker.command = differing


def analytics() -> None:
    """Log and count each request of every account, and publish lines and counts many times a second."""
    on, decode = Metrics(enabled=True, include_apis=True), properties._decode
    everything = ServiceProperties(Logging(read=True, write=True, delete=True), on, on)
    vars(properties)["_decode"] = lambda value: everything if value is None else decode(value)
    writers: tuple[Any, ...] = (LogWriter, MetricsWriter)
    for writer in writers:
        writer.run = partialmethod(lambda self, run, _: run(self, BUSY_SECONDS), writer.run)


VARIANTS: dict[str, Callable[[], None]] = {
    "small_buffers": small_buffers,
    "stepping_clock": stepping_clock.install,
    "slow_changes": slow_changes,
    "slow_syncs": slow_syncs,
    "scripts": scripts,
    "peers": peers,
    "hasty_sweeps": hasty_sweeps,
    "in_workers": in_workers,
    "busy_maintenance": busy_maintenance,
    "paused_uploads": paused_uploads,
    "analytics": analytics,
}


if __name__ == "__main__":
    VARIANTS[sys.argv[1]]()
    del sys.argv[1]
    sys.exit(main())
