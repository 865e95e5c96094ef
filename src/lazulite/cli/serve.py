"""`lazulite serve`: the parts put together, and taken apart again in the reverse order."""

import gc
import random
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial

from lazulite import __version__
from lazulite.cli.backup_files import LIST
from lazulite.cli.bearer import bearer_authentication
from lazulite.cli.connection_string import connection_string, open_directory
from lazulite.cli.parser import DEFAULT_HOST, DEFAULT_LOCATION, DEFAULT_PORT
from lazulite.cli.refusal import Refusal
from lazulite.cli.telemetry import metrics_server, new_metrics, trace_logs
from lazulite.config import ConfigError, Settings, check_development_key, settings_from, store_path
from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb import RocksEngine
from lazulite.protocol.accounts import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Service
from lazulite.protocol.request_id import RequestIds
from lazulite.server import lifecycle
from lazulite.server.certificate import Certificate, CertificateError
from lazulite.server.control import control
from lazulite.server.debug_log import DebugLog
from lazulite.server.exchange_log import ExchangeLog
from lazulite.server.health import Health
from lazulite.server.lane import Lane
from lazulite.server.listener import BindError, Ports, Secure, Server
from lazulite.server.proxies import Proxied
from lazulite.server.request_log import RequestLog
from lazulite.table.call import QueryLimits
from lazulite.table.service import TableService


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Serve until a signal."""
    if args.cert is None and (args.key is not None or args.https_port is not None):
        raise Refusal("--key and --https-port need --cert", 2)
    if args.metrics_port is None and args.metrics_host is not None:
        raise Refusal("--metrics-host needs --metrics-port", 2)
    try:
        settings = settings_from(args, environ)
        with ExitStack() as stack:
            logs = _open_logs(settings, stack)
            lifecycle.run(_serve(settings, logs))
    except (ConfigError, CertificateError, BindError, EngineError) as error:
        raise Refusal(error) from error
    return 0


async def _serve(settings: Settings, logs: list[ExchangeLog]) -> None:
    directory = open_directory(settings.location, settings.accounts, _report)
    check_development_key(settings, directory)
    secure = None
    if settings.cert is not None and settings.https_port is not None:
        secure = Secure(settings.https_port, Certificate(settings.cert, settings.key))
    location = settings.location
    if location is not None and (location / LIST).exists():
        raise ConfigError(
            f"{location} is a backup, which serving would change; lazulite restore makes a location of it"
        )
    metrics = new_metrics(settings)
    store = None if location is None else store_path(location)
    engine = RocksEngine.open(store, system_clock, meter=None if metrics is None else metrics.flushed)

    try:
        async with (
            bearer_authentication(settings.bearer, _report) as bearer,
            control(location, engine.checkpoint, _report),
        ):
            addressing = Addressing(settings.host_suffixes)
            limits = QueryLimits(page_seconds=settings.page_seconds)
            lane = Lane()
            tables = TableService(
                engine, directory, limits=limits, addressing=addressing, bearer=bearer, paced=lane.paced
            )
            await tables.start()
            service: Service = Health(tables, engine.check_writable)
            if settings.trusted_proxies:
                service = Proxied(service, settings.trusted_proxies)
            _calm_collector()
            server = Server(
                service,
                host=settings.host,
                port=settings.port,
                secure=secure,
                new_request_id=RequestIds(random.SystemRandom()).next,
                limits=settings.limits,
                logs=logs if metrics is None else [*logs, metrics],
                lane=lane,
            )
            on_hangup = None if secure is None else partial(_read_again, secure.certificate)
            async with metrics_server(settings, metrics, server, engine) as page:

                def announce(ports: Ports) -> None:
                    metrics_port = None if page is None else page.port
                    lines = announcement(settings, directory, engine.name, ports, metrics_port)
                    sys.stdout.writelines(f"{line}\n" for line in lines)
                    sys.stdout.flush()

                await lifecycle.serve(server, on_ready=announce, on_hangup=on_hangup)
    finally:
        await engine.close()


def _calm_collector() -> None:
    """Keep the cycle collector off what lives as long as the process, and rarely at the rest.

    Requests leave next to no cycles behind, so the default thresholds make it look for nothing, and often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


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
    for trace_log in trace_logs(settings, _report):
        stack.callback(trace_log.close)
        logs.append(trace_log)
    return logs


def _read_again(certificate: Certificate) -> None:
    try:
        certificate.reload()
    except CertificateError as error:
        _report(f"the certificate stays as it was: {error}")
    else:
        _report("the certificate has been read again")


def _report(text: str) -> None:
    print(f"lazulite: {text}", file=sys.stderr)
