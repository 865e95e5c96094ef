"""`lazulite serve`: the parts put together, and taken apart again in the reverse order."""

import asyncio
import os
import pickle
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from socket import socket

from lazulite import __version__
from lazulite.cli import front_end
from lazulite.cli.backup_files import LIST
from lazulite.cli.connection_string import connection_string, open_directory
from lazulite.cli.parser import DEFAULT_HOST, DEFAULT_LOCATION, DEFAULT_PORT
from lazulite.cli.refusal import Refusal
from lazulite.cli.table_server import calm_collector, open_logs, read_again, report, secure_of, table_server
from lazulite.cli.telemetry import metrics_server, new_metrics
from lazulite.config import ConfigError, Settings, check_development_key, settings_from, store_path
from lazulite.engine.contract import EngineError
from lazulite.engine.flush_meter import Meter
from lazulite.engine.remote_server import EngineServer
from lazulite.engine.rocksdb import RocksEngine
from lazulite.protocol.accounts import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.protocol.clock import system_clock
from lazulite.protocol.spaces import WATCHED
from lazulite.server import lifecycle
from lazulite.server.certificate import CertificateError
from lazulite.server.control import control
from lazulite.server.exchange_log import ExchangeLog
from lazulite.server.front_ends import Address, FrontEndError, FrontEnds
from lazulite.server.lane import Lane
from lazulite.server.listener import BindError, Ports, Secure
from lazulite.server.locked_output import new_lock
from lazulite.table.wording import TableWording


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Serve until a signal."""
    if args.cert is None and (args.key is not None or args.https_port is not None):
        raise Refusal("--key and --https-port need --cert", 2)
    if args.metrics_port is None and args.metrics_host is not None:
        raise Refusal("--metrics-host needs --metrics-port", 2)
    if args.metrics_port is not None and args.workers > 1:
        raise Refusal("--metrics-port counts one process; it cannot be had with --workers yet", 2)
    try:
        settings = settings_from(args, environ)
        if settings.workers > 1:
            lifecycle.run(_serve_by_workers(settings))
        else:
            with ExitStack() as stack:
                logs = open_logs(settings, stack)
                lifecycle.run(_serve(settings, logs))
    except (ConfigError, CertificateError, BindError, EngineError, FrontEndError) as error:
        raise Refusal(error) from error
    return 0


async def _serve(settings: Settings, logs: list[ExchangeLog]) -> None:
    directory, secure = _checked(settings)
    metrics = new_metrics(settings)
    engine = _open_engine(settings, None if metrics is None else metrics.flushed)
    try:
        async with (
            control(settings.location, engine.checkpoint, report),
            table_server(
                settings, engine, directory, secure=secure, logs=logs if metrics is None else [*logs, metrics]
            ) as server,
            metrics_server(settings, metrics, server, engine) as page,
        ):
            metrics_port = None if page is None else page.port
            announce = partial(_announce, settings, directory, engine.name, metrics_port)
            on_hangup = None if secure is None else partial(read_again, secure.certificate)
            await lifecycle.serve(server, on_ready=announce, on_hangup=on_hangup)
    finally:
        await engine.close()


async def _serve_by_workers(settings: Settings) -> None:
    """Own the store, and let front ends serve."""
    directory, secure = _checked(settings)
    engine = _open_engine(settings)
    lane = Lane()
    owner = EngineServer(engine, TableWording(), WATCHED, report, paced=lane.paced, passed=lane.passed)
    lock = new_lock()
    try:
        async with control(settings.location, engine.checkpoint, report):
            calm_collector()
            front_ends = FrontEnds(
                partial(front_end.command, lock),
                pickle.dumps(settings),
                count=settings.workers,
                address=Address(settings.host, settings.port, settings.https_port),
                limits=settings.limits,
                attach=partial(_attach, owner),
                report=report,
                shared=[lock],
            )
            announce = partial(_announce, settings, directory, engine.name, None)
            on_hangup = None if secure is None else front_ends.reload
            await lifecycle.serve(front_ends, on_ready=announce, on_hangup=on_hangup)
    finally:
        lane.close()
        await owner.close()
        await engine.close()
        os.close(lock)


async def _attach(owner: EngineServer, stream: socket, kill: Callable[[], None]) -> None:
    link = owner.link(kill)
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=stream)


def _checked(settings: Settings) -> tuple[AccountDirectory, Secure | None]:
    """Return the accounts and the certificate.

    Raises:
        ConfigError: something is not as it should be, and no file has been touched.
        CertificateError: likewise.
    """
    directory = open_directory(settings.location, settings.accounts, report)
    check_development_key(settings, directory)
    secure = secure_of(settings)
    location = settings.location
    if location is not None and (location / LIST).exists():
        raise ConfigError(
            f"{location} is a backup, which serving would change; lazulite restore makes a location of it"
        )
    return directory, secure


def _open_engine(settings: Settings, meter: Meter | None = None) -> RocksEngine:
    location = settings.location
    return RocksEngine.open(None if location is None else store_path(location), system_clock, meter=meter)


def _announce(
    settings: Settings, directory: AccountDirectory, store: str, metrics_port: int | None, ports: Ports
) -> None:
    lines = announcement(settings, directory, store, ports, metrics_port)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def announcement(
    settings: Settings, directory: AccountDirectory, store: str, ports: Ports, metrics_port: int | None = None
) -> Iterator[str]:
    """Yield what a user reads once the service accepts requests.

    A connection string is shown where its key is public; for other accounts, the command that prints it is, lest a key
    get into a log.

    Args:
        settings: of the service.
        directory: its accounts.
        store: where the engine keeps its data.
        ports: what is listened on.
        metrics_port: what is listened on for metrics.
    """
    host = _in_url(settings.host)
    listened = [(scheme, port) for scheme, port in ports._asdict().items() if port is not None]
    urls = " and ".join(f"{scheme}://{host}:{port}/" for scheme, port in listened)
    yield f"Lazulite {__version__} listens on {urls} (RocksDB, {store})"
    public = DEVELOPMENT_ACCOUNT.keys[0]
    for name in directory.names():
        account = directory.get(name)
        if account is None:
            continue
        for scheme, port in listened:
            if public in account.keys:
                yield connection_string(account, settings.host, port, account.keys.index(public) + 1, scheme)
            else:
                yield f"account {name}: {_hint(settings, name, port, scheme)}"
    if metrics_port is not None:
        yield f"metrics: http://{_in_url(settings.metrics_host)}:{metrics_port}/metrics"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _hint(settings: Settings, account: str, port: int, scheme: str) -> str:
    words = ["lazulite", "connection-string", "--account", account]
    if settings.location not in (None, DEFAULT_LOCATION):
        words += ["--location", str(settings.location)]
    if settings.host != DEFAULT_HOST:
        words += ["--table-host", settings.host]
    if port != DEFAULT_PORT:
        words += ["--table-port", str(port)]
    if scheme == "https":
        words.append("--https")
    return shlex.join(words)
