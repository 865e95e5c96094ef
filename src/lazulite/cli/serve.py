"""`lazulite serve`: open the store, start the server, and close both in reverse order after a signal."""

import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from lazulite.app.channel import addresses_of, status_of
from lazulite.app.commands import ADDRESSES, STATUS
from lazulite.app.servers import open_servers
from lazulite.app.services import certificate_of, open_logs, reload_certificate, tune_garbage_collector
from lazulite.app.stderr import report
from lazulite.app.stores import Seeder, Store, open_store, seeded
from lazulite.app.telemetry import counters_of, metrics_server, new_metrics, server_readings
from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.account_stores import account_store
from lazulite.cli.announcement import announcement
from lazulite.cli.errors import CommandError
from lazulite.cli.ui_host import UiHost, announce_ui, ui_host
from lazulite.engine.contract import EngineError
from lazulite.server import lifecycle
from lazulite.server.net.certificate import CertificateError
from lazulite.server.observability.exchange import ExchangeLog
from lazulite.server.server import BindError, Ports
from lazulite.server.workers.supervisor import WorkerError
from lazulite.settings.addresses import SERVICES, WEB
from lazulite.settings.config import ConfigError, Settings, settings_from


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Serve until SIGTERM or SIGINT."""
    https_ports = [getattr(args, f"{name}_https_port") for name in (*SERVICES, WEB)]
    if args.cert is None and any(each is not None for each in (args.key, *https_ports)):
        raise CommandError("--key and the ports for HTTPS need --cert", 2)
    if args.metrics_port is None and args.metrics_host is not None:
        raise CommandError("--metrics-host needs --metrics-port", 2)
    if args.ui_port is None and (args.ui_host is not None or args.ui_read_only):
        raise CommandError("--ui-host and --ui-read-only need --ui-port", 2)
    try:
        settings = settings_from(args, environ)
        settings, seeder = _seeded(args, settings, environ)
        lifecycle.allow_connections(settings.limits)
        if settings.workers > 1:
            from lazulite.app.worker_supervisor import serve_by_workers  # noqa: PLC0415 - not on Windows

            lifecycle.run(serve_by_workers(settings, ui_host, partial(_announce, settings), seeder))
        else:
            with ExitStack() as stack:
                logs = open_logs(settings, stack)
                lifecycle.run(_serve(settings, logs, seeder))
    except (ConfigError, AccountsError, CertificateError, BindError, EngineError, WorkerError) as error:
        raise CommandError(error) from error
    return 0


def _seeded(args: Namespace, settings: Settings, environ: Mapping[str, str]) -> tuple[Settings, Seeder | None]:
    """Return the settings with the accounts of the seed, and what fills the store; None without a seed.

    Raises:
        ConfigError: the seed cannot be read, or is wrong.
        AccountsError: the accounts cannot be read or written.
    """
    if args.seed is None:
        return settings, None
    from lazulite.app.seeding import ServerSeed  # noqa: PLC0415 - few servers have a seed

    server = ServerSeed.of_file(args.seed)
    if settings.location is None and settings.database is None:
        settings = server.settings(settings, environ)
    else:
        server.store_accounts(account_store(args, environ), environ)

    async def fill(store: Store) -> None:
        await server.fill(settings, store)
        for line in server.lines():
            report(f"seed {args.seed}: {line}")

    return settings, fill


async def _serve(settings: Settings, logs: list[ExchangeLog], seeder: Seeder | None) -> None:
    certificate = certificate_of(settings)
    metrics = new_metrics(settings)
    all_logs = logs if metrics is None else [*logs, metrics]
    async with (
        open_store(settings, None if metrics is None else metrics.flushed) as store,
        seeded(store, seeder),
        open_servers(settings, store, certificate=certificate, logs=all_logs) as servers,
        metrics_server(
            settings, metrics, servers, store.statistics, partial(counters_of, store.counts, servers)
        ) as page,
        ui_host(settings, store, certificate, servers.scheduler) as host,
    ):
        store.channel.register(STATUS, status_of("server", lambda: server_readings(servers)))
        tune_garbage_collector()
        await lifecycle.serve(
            servers,
            on_ready=lambda ports: _announce(settings, store, host, ports, None if page is None else page.port),
            on_hangup=None if certificate is None else partial(reload_certificate, certificate),
        )


def _announce(
    settings: Settings, store: Store, host: UiHost, ports: Mapping[str, Ports], metrics_port: int | None
) -> None:
    store.channel.register(ADDRESSES, addresses_of(settings, ports))
    lines = announcement(settings, store.directory, store.name, ports, metrics_port)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    announce_ui(host, ports)
    sys.stdout.flush()
