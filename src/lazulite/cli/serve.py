"""`lazulite serve`: the parts put together, and taken apart again in the reverse order."""

import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial

from lazulite import __version__
from lazulite.app.services import calm_collector, open_logs, read_again, secure_of, table_server
from lazulite.app.stores import Store, open_store
from lazulite.app.telemetry import metrics_server, new_metrics
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.connection_string import connection_string
from lazulite.cli.errors import Refusal
from lazulite.cli.flag_types import DEFAULT_HOST, DEFAULT_LOCATION, DEFAULT_PORT
from lazulite.engine.contract import EngineError
from lazulite.server import lifecycle
from lazulite.server.net.certificate import CertificateError
from lazulite.server.observability.exchange import ExchangeLog
from lazulite.server.server import BindError, Ports
from lazulite.server.workers.supervisor import FrontEndError
from lazulite.settings.config import ConfigError, Settings, settings_from


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Serve until a signal."""
    if args.cert is None and (args.key is not None or args.https_port is not None):
        raise Refusal("--key and --https-port need --cert", 2)
    if args.metrics_port is None and args.metrics_host is not None:
        raise Refusal("--metrics-host needs --metrics-port", 2)
    if args.metrics_port is not None and args.workers > 1:
        raise Refusal("--metrics-port is not available with --workers", 2)
    try:
        settings = settings_from(args, environ)
        lifecycle.allow_connections(settings.limits)
        if settings.workers > 1:
            from lazulite.app.worker_supervisor import serve_by_workers  # noqa: PLC0415 - not on Windows

            lifecycle.run(serve_by_workers(settings, partial(_announce, settings)))
        else:
            with ExitStack() as stack:
                logs = open_logs(settings, stack)
                lifecycle.run(_serve(settings, logs))
    except (ConfigError, AccountsError, CertificateError, BindError, EngineError, FrontEndError) as error:
        raise Refusal(error) from error
    return 0


async def _serve(settings: Settings, logs: list[ExchangeLog]) -> None:
    secure = secure_of(settings)
    metrics = new_metrics(settings)
    async with (
        open_store(settings, None if metrics is None else metrics.flushed) as store,
        table_server(settings, store, secure=secure, logs=logs if metrics is None else [*logs, metrics]) as server,
        metrics_server(settings, metrics, server, store.statistics) as page,
    ):
        metrics_port = None if page is None else page.port
        announce = partial(_announce, settings, store, metrics_port=metrics_port)
        on_hangup = None if secure is None else partial(read_again, secure.certificate)
        calm_collector()
        await lifecycle.serve(server, on_ready=announce, on_hangup=on_hangup)


def _announce(settings: Settings, store: Store, ports: Ports, metrics_port: int | None = None) -> None:
    lines = announcement(settings, store.directory, store.name, ports, metrics_port)
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
        store: what keeps its data, and where.
        ports: what is listened on.
        metrics_port: what is listened on for metrics.
    """
    host = _in_url(settings.host)
    listened = [(scheme, port) for scheme, port in ports._asdict().items() if port is not None]
    urls = " and ".join(f"{scheme}://{host}:{port}/" for scheme, port in listened)
    yield f"Lazulite {__version__} listens on {urls} ({store})"
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
    if settings.database is not None:
        words += ["--engine", settings.database.dsn]
    if settings.location not in (None, DEFAULT_LOCATION):
        words += ["--location", str(settings.location)]
    if settings.host != DEFAULT_HOST:
        words += ["--table-host", settings.host]
    if port != DEFAULT_PORT:
        words += ["--table-port", str(port)]
    if scheme == "https":
        words.append("--https")
    return shlex.join(words)
