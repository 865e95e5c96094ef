"""A server in a thread of this process, with its own event loop, while a test runs.

The next writes of an embedded store can be made to fail.
"""

import asyncio
import hashlib
import os
import socket
import threading
import uuid
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from lazulite.app.channel import addresses_of, status_of
from lazulite.app.commands import ADDRESSES, KEEP_STATE, RESET_STATE, STATUS
from lazulite.app.seeding import ServerSeed
from lazulite.app.servers import open_servers
from lazulite.app.stores import Store, open_store
from lazulite.app.telemetry import server_readings
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.accounts.account import Account as ServedAccount
from lazulite.auth.accounts.document import StoredAccount
from lazulite.auth.accounts.switches import Switches
from lazulite.cli.connection_string import connection_string, path_style
from lazulite.cli.ui_host import ui_host
from lazulite.control.channel import Channel
from lazulite.control.client import SECONDS_MAX, Client
from lazulite.control.command import NoArguments
from lazulite.engine.contract import Clock, EngineUnavailableError
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.protocol.clock import UNIX_EPOCH_TICKS, system_clock
from lazulite.seed.document import SeedSource, read_seed
from lazulite.server.lifecycle import run
from lazulite.server.limits import Limits
from lazulite.settings.addresses import BLOB, DEFAULT_HOST, QUEUE, TABLE
from lazulite.settings.config import Settings
from lazulite.settings.partitions import NO_TARGETS, partition_settings
from lazulite.testing.faults import Faults

Step = Literal["before_write", "before_sync", "after_sync"]
"""A step of a flush: see `engine.rocksdb.database.Failpoints`."""

_LIMITS = Limits(drain_seconds=2, first_request_seconds=0)
"""The end of a test waits for a request in flight, and for nothing else."""
_ANALYTICS_SECONDS = 0.5
"""The time between two blobs of logs: a test does not wait for a minute."""
_ENGINE = RocksSettings(recovery_retry_seconds=0.001)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NextFailures(dict[str, Callable[[], None]]):
    """Failpoints that each fail as often as they are asked to, and pass otherwise. Safe in threads."""

    def __init__(self) -> None:
        super().__init__()
        self._armed: dict[str, deque[None]] = {step: deque() for step in get_args(Step)}
        for step, armed in self._armed.items():
            self[step] = self._failpoint(step, armed)

    def fail(self, step: Step, count: int) -> None:
        """Make a step fail the next `count` times.

        Raises:
            ValueError: there is no such step.
        """
        if step not in self._armed:
            raise ValueError(f"no step {step!r}: choose from {', '.join(self._armed)}")
        self._armed[step].extend([None] * count)

    @staticmethod
    def _failpoint(step: str, armed: "deque[None]") -> Callable[[], None]:
        def fail() -> None:
            try:
                armed.pop()
            except IndexError:
                return
            raise EngineUnavailableError(f"failed {step}, as a test asked for")

        return fail


class Account(NamedTuple):
    """A storage account of a running server."""

    name: str
    key: str
    """Base64, as in a connection string."""
    endpoint: str
    """The URL of the Table service, without a slash at its end."""
    connection_string: str
    queue_endpoint: str
    """The URL of the Queue service, without a slash at its end."""
    blob_endpoint: str
    """The URL of the Blob service, without a slash at its end."""


class Storage:
    """A running server. Made by `server`; safe to use from any thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        ports: Mapping[str, int],
        directory: AccountDirectory,
        failures: NextFailures,
        channel: Channel,
    ) -> None:
        self._loop = loop
        self._channel = channel
        self._directory = directory
        self._failures = failures
        self._ports = ports
        self.port = ports[TABLE]
        """The port of the Table service on 127.0.0.1."""
        self.queue_port = ports[QUEUE]
        """The port of the Queue service on 127.0.0.1."""
        self.blob_port = ports[BLOB]
        """The port of the Blob service on 127.0.0.1."""
        self.development = self._described(DEVELOPMENT_ACCOUNT)
        """The development account, `devstoreaccount1`."""
        self.control = Client(self._connect)
        """Sends commands to the server; see `lazulite.control`."""
        self.faults = Faults(self.control)
        """The rules of faults, at first none; see docs/faults.md."""

    @property
    def connection_string(self) -> str:
        """The connection string of the development account."""
        return self.development.connection_string

    @property
    def endpoint(self) -> str:
        """The development account's URL of the Table service."""
        return self.development.endpoint

    def account(
        self,
        name: str | None = None,
        *,
        versioning: bool | None = None,
        container_retention_days: int | None = None,
        public_access: bool | None = None,
        rehydrate_after: int | None = None,
    ) -> Account:
        """Return an account, added if it is not there yet.

        Args:
            name: 3 to 24 characters of a-z and 0-9; None for an account that no test has used, with nothing in it.
                A name's key is always the same, so that data at a location can be read again later.
            versioning: whether a write keeps the previous state of a blob; None leaves it, and is off for a new one.
            container_retention_days: how long a deleted container can be restored, 0 to 365; None likewise, and 0.
            public_access: whether containers can be public; None likewise, and off.
            rehydrate_after: how many seconds an archived blob takes to be in another tier; None likewise, and 0.
        """
        name = name or f"t{uuid.uuid4().hex[:23]}"
        account = ServedAccount(name, (hashlib.sha512(f"lazulite.testing {name}".encode()).digest(),))
        values = (versioning, container_retention_days, public_access, rehydrate_after)
        given = zip(Switches._fields, values, strict=True)
        changes = {switch: value for switch, value in given if value is not None}
        added: Future[Account] = Future()
        self._loop.call_soon_threadsafe(lambda: added.set_result(self._add(account, changes)))
        return added.result()

    def fail_next(self, step: Step = "before_write", *, count: int = 1) -> None:
        """Make the next writes fail: their requests are answered with 503 `ServerBusy`.

        The store then recovers in the background, and writes meanwhile get that answer, too.

        Args:
            step: at `before_write` nothing of the write is stored. At `before_sync` and `after_sync` it is stored
                although its client gets an error, as after a power cut that came before the response.
            count: writes, one after the other.

        Raises:
            ValueError: there is no such step.
        """
        self._failures.fail(step, count)

    def reset(self) -> None:
        """Return to the data that the server began with: those of its seed, or none.

        Accounts stay, as do rules of faults. No request may run meanwhile. It takes a few milliseconds.

        Raises:
            ControlError: a table of the seed has had indexes, which cannot be reset.
        """
        self.control.ask(RESET_STATE, NoArguments())

    def _connect(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.settimeout(SECONDS_MAX)
        self._loop.call_soon_threadsafe(self._channel.attach, theirs)
        return ours

    def _add(self, account: ServedAccount, changes: Mapping[str, Any]) -> Account:
        known = self._directory.get(account.name)
        if known is None or changes:
            account = known or account
            kept = [each for each in map(self._directory.get, self._directory.names()) if each is not None]
            stored = {each.name: _stored(each) for each in kept}
            switches = account.switches._replace(**changes)
            self._directory.replace({**stored, account.name: _stored(account)._replace(switches=switches)})
        return self._described(known or account)

    def _described(self, account: ServedAccount) -> Account:
        endpoints = {service: path_style(account.name, DEFAULT_HOST, port) for service, port in self._ports.items()}
        return Account(
            account.name,
            b64encode(account.keys[0]).decode(),
            endpoints[TABLE],
            connection_string(account, endpoints),
            endpoints[QUEUE],
            endpoints[BLOB],
        )


def _stored(account: ServedAccount) -> StoredAccount:
    return StoredAccount(account.keys, account.delegation_keys_since, account.switches)


@contextmanager
def server(
    location: Path | str | None = None,
    *,
    clock: Callable[[], datetime] | None = None,
    meter: bool = False,
    targets: str | None = None,
    time_scale: float = 1,
    seed: SeedSource | None = None,
) -> Iterator[Storage]:
    """Serve tables, queues and blobs on free ports of 127.0.0.1 inside the block, from a thread of its own.

    Args:
        location: the directory of the store, as of `lazulite serve --location`; None keeps everything in memory.
        clock: returns the server's time, with a time zone; it is called in the server's thread. None for the
            machine's. Shared Key requests that are dated more than 15 minutes off are rejected, as always.
        meter: whether the traffic of resources is counted, as by `lazulite serve --meter`.
        targets: as of `lazulite serve --targets`, such as `study-2010`; None: requests have no limits. With a `clock`,
            all times and rates are of it, and requests that would wait say so in `Server-Timing`, and do not wait.
        time_scale: as of `lazulite serve --time-scale`.
        seed: what the server has at first: a file, as of `lazulite serve --seed`, or a mapping of its form. What it has
            outside of `accounts` is the development account's. See `Storage.reset`.

    Raises:
        SeedFileError: the seed cannot be read, or is wrong.
        ConfigError: the server rejects something of the seed.
        TargetsError: there are no such targets.
        ConfigError, AccountsError, EngineError: there is no store to be served at the location.
    """
    settings = Settings(
        location=None if location is None else Path(location),
        accounts={DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT},
        accept_clock_jump=True,
        limits=_LIMITS,
        analytics_seconds=_ANALYTICS_SECONDS,
        meter=meter or targets is not None,
        partitions=NO_TARGETS if targets is None else partition_settings(targets, time_scale),
    )
    seeder = None if seed is None else ServerSeed(read_seed(seed), DEVELOPMENT_ACCOUNT.name)
    if seeder is not None:
        settings = seeder.settings(settings, os.environ)
    started: _Started = Future()
    ticks = system_clock if clock is None else _ticks_of(clock)
    thread = threading.Thread(
        target=_run, args=(settings, ticks, seeder, started), name="lazulite-testing", daemon=True
    )
    thread.start()
    storage, stop = started.result()
    try:
        yield storage
    finally:
        stop()
        thread.join()


_Started: TypeAlias = "Future[tuple[Storage, Callable[[], None]]]"


def _from_thread(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(call)


def _ticks_of(clock: Callable[[], datetime]) -> Clock:
    return lambda: UNIX_EPOCH_TICKS + (clock() - _EPOCH) // timedelta(microseconds=1) * 10


def _run(settings: Settings, clock: Clock, seeder: ServerSeed | None, started: _Started) -> None:
    try:
        run(_serve(settings, clock, seeder, started))
    except BaseException as error:  # Whatever it is, it is raised in the thread that waits for the start.
        if started.done():
            raise
        started.set_exception(error)


async def _serve(settings: Settings, clock: Clock, seeder: ServerSeed | None, started: _Started) -> None:
    loop, stopped, failures = asyncio.get_running_loop(), asyncio.Event(), NextFailures()
    async with (
        open_store(settings, clock=clock, failpoints=failures, tuning=_ENGINE) as store,
        _seeded(seeder, settings, store, clock),
        open_servers(settings, store, clock=clock, for_test=True) as servers,
        ui_host(settings, store, None, servers.scheduler, clock) as host,
    ):
        try:
            await servers.start()
            host.ports = servers.ports
            store.channel.register(ADDRESSES, addresses_of(settings, servers.ports))
            store.channel.register(STATUS, status_of("server", lambda: server_readings(servers)))
            ports = {service: found.http or 0 for service, found in servers.ports.items()}
            storage = Storage(loop, ports, store.directory, failures, store.channel)
            if seeder is not None:
                await _keep(storage.control)
            started.set_result((storage, partial(_from_thread, loop, stopped.set)))
            await stopped.wait()
        finally:
            await servers.stop()


@asynccontextmanager
async def _seeded(seeder: ServerSeed | None, settings: Settings, store: Store, clock: Clock) -> AsyncIterator[None]:
    if seeder is not None:
        await seeder.fill(settings, store, clock)
    yield


async def _keep(control: Client) -> None:
    """Have the server keep the state to which `Storage.reset` returns."""
    await asyncio.to_thread(control.ask, KEEP_STATE, NoArguments())
