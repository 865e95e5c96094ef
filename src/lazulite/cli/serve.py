"""`lazulite serve`: the parts put together, and taken apart again in the reverse order."""

import gc
import random
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from lazulite import __version__
from lazulite.cli.bearer import bearer_authentication
from lazulite.cli.connection_string import connection_string, open_directory
from lazulite.cli.parser import DEFAULT_LOCATION, DEFAULT_PORT
from lazulite.cli.refusal import Refusal
from lazulite.config import ConfigError, Settings, check_development_key, settings_from, store_path
from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb import RocksEngine
from lazulite.protocol.accounts import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.protocol.clock import system_clock
from lazulite.protocol.request_id import RequestIds
from lazulite.server import lifecycle
from lazulite.server.debug_log import DebugLog
from lazulite.server.exchange_log import ExchangeLog
from lazulite.server.health import Health
from lazulite.server.listener import BindError
from lazulite.server.request_log import RequestLog
from lazulite.table.call import QueryLimits
from lazulite.table.service import TableService


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Serve until a signal."""
    try:
        settings = settings_from(args, environ)
        with ExitStack() as stack:
            logs = _open_logs(settings, stack)
            lifecycle.run(_serve(settings, logs))
    except (ConfigError, BindError, EngineError) as error:
        raise Refusal(error) from error
    return 0


async def _serve(settings: Settings, logs: list[ExchangeLog]) -> None:
    directory = open_directory(settings.location, settings.accounts, _report)
    check_development_key(settings, directory)
    location = settings.location
    engine = RocksEngine.open(None if location is None else store_path(location), system_clock)

    def announce(port: int) -> None:
        sys.stdout.writelines(f"{line}\n" for line in announcement(settings, directory, engine.name, port))
        sys.stdout.flush()

    try:
        async with bearer_authentication(settings.bearer, _report) as bearer:
            limits = QueryLimits(page_seconds=settings.page_seconds)
            service = TableService(engine, directory, limits=limits, bearer=bearer)
            await service.start()
            _calm_collector()
            await lifecycle.serve(
                Health(service, engine.check_writable),
                host=settings.host,
                port=settings.port,
                new_request_id=RequestIds(random.SystemRandom()).next,
                on_ready=announce,
                limits=settings.limits,
                logs=logs,
            )
    finally:
        await engine.close()


def _calm_collector() -> None:
    """Keep the cycle collector off what lives as long as the process, and rarely at the rest.

    Requests leave next to no cycles behind, so the default thresholds make it look for nothing, and often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def announcement(settings: Settings, directory: AccountDirectory, store: str, port: int) -> Iterator[str]:
    """Yield what a user reads once the service accepts requests.

    A connection string is shown where its key is public; for other accounts, the command that prints it is, lest a key
    get into a log.

    Args:
        settings: of the service.
        directory: its accounts.
        store: where the engine keeps its data.
        port: the port that is listened on.
    """
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    yield f"Lazulite {__version__} listens on http://{host}:{port}/ (RocksDB, {store})"
    public = DEVELOPMENT_ACCOUNT.keys[0]
    for name in directory.names():
        account = directory.get(name)
        if account is None:
            continue
        if public in account.keys:
            yield connection_string(account, settings.host, port, account.keys.index(public) + 1)
        else:
            yield f"account {name}: {_hint(settings, name, port)}"


def _hint(settings: Settings, account: str, port: int) -> str:
    words = ["lazulite", "connection-string", "--account", account]
    if settings.location not in (None, DEFAULT_LOCATION):
        words += ["--location", str(settings.location)]
    if settings.host != "127.0.0.1":
        words += ["--table-host", settings.host]
    if port != DEFAULT_PORT:
        words += ["--table-port", str(port)]
    return shlex.join(words)


def _open_logs(settings: Settings, stack: ExitStack) -> list[ExchangeLog]:
    logs: list[ExchangeLog] = []
    if settings.log_requests:
        request_log = RequestLog(sys.stderr.buffer)
        stack.callback(request_log.close)
        logs.append(request_log)
    if settings.debug_file is not None:
        try:
            debug_log = DebugLog(stack.enter_context(settings.debug_file.open("ab")))
        except OSError as error:
            raise ConfigError(f"cannot write {settings.debug_file}: {error.strerror}") from error
        stack.callback(debug_log.close)
        logs.append(debug_log)
    return logs


def _report(text: str) -> None:
    print(f"lazulite: {text}", file=sys.stderr)
