"""The lines that `lazulite serve` prints once it accepts requests."""

import shlex
from collections.abc import Iterator, Mapping

from lazulite import __version__
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.cli.connection_string import connection_string, host_style, path_style
from lazulite.cli.flag_types import DEFAULT_LOCATION
from lazulite.server.server import Ports
from lazulite.settings.addresses import DEFAULT_HOST, DEFAULT_PORTS, WEB
from lazulite.settings.config import Settings


def announcement(
    settings: Settings,
    directory: AccountDirectory,
    store: str,
    ports: Mapping[str, Ports],
    metrics_port: int | None = None,
) -> Iterator[str]:
    """Yield the lines.

    For an account with the public key, a line is its connection string. For another account, a line is the command
    that prints the connection string, so that no secret key gets into a log.

    Args:
        settings: the settings of the server.
        directory: the accounts.
        store: the kind and the place of the store, such as `RocksDB, data/store`.
        ports: the ports that the server listens on, by service.
        metrics_port: the port of the metrics endpoint; None without one.
    """
    endpoints = {name: _by_scheme(own) for name, own in ports.items()}
    (first, *_), *others = settings.servers
    yield f"Lazulite {__version__} listens on {_urls(settings, first, endpoints[first])} ({store})"
    public = DEVELOPMENT_ACCOUNT.keys[0]
    if not directory.names():
        yield "no account is left, so each request is rejected; create one: lazulite account add NAME"
    for name in directory.names():
        account = directory.get(name)
        if account is None:
            continue
        for scheme in endpoints[first]:
            reached = {service: own[scheme] for service, own in endpoints.items() if scheme in own and service != WEB}
            if public in account.keys:
                urls = {service: _endpoint(settings, service, name, port, scheme) for service, port in reached.items()}
                yield connection_string(account, urls, account.keys.index(public) + 1, scheme)
            else:
                yield f"account {name}: {_connection_string_command(settings, name, reached, scheme)}"
    for names in others:
        yield f"{' and '.join(map(_plural, names))}: {_urls(settings, names[0], endpoints[names[0]])}"
    if metrics_port is not None:
        yield f"metrics: http://{_in_url(settings.metrics_host)}:{metrics_port}/metrics"


def _plural(service: str) -> str:
    return "websites" if service == WEB else f"{service}s"


def _by_scheme(ports: Ports) -> Mapping[str, int]:
    return {scheme: port for scheme, port in ports._asdict().items() if port is not None}


def _urls(settings: Settings, service: str, ports: Mapping[str, int]) -> str:
    host = _in_url(settings.address(service).host)
    return " and ".join(f"{scheme}://{host}:{port}/" for scheme, port in ports.items())


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _endpoint(settings: Settings, service: str, account: str, port: int, scheme: str) -> str:
    if settings.shares_port(service):
        return host_style(account, settings.host_suffixes_of(service)[-1], port, scheme)
    return path_style(account, settings.address(service).host, port, scheme)


def _connection_string_command(settings: Settings, account: str, ports: Mapping[str, int], scheme: str) -> str:
    words = ["lazulite", "connection-string", "--account", account]
    if settings.database is not None:
        words += ["--engine", settings.database.dsn]
    if settings.location not in (None, DEFAULT_LOCATION):
        words += ["--location", str(settings.location)]
    for service, port in ports.items():
        host = settings.address(service).host
        words += [] if host == DEFAULT_HOST else [f"--{service}-host", host]
        words += [] if port == DEFAULT_PORTS[service] else [f"--{service}-port", str(port)]
    if any(map(settings.shares_port, ports)) and len(settings.host_suffixes) > 1:
        words += ["--host-suffix", settings.host_suffixes[-1]]
    if scheme == "https":
        words.append("--https")
    return shlex.join(words)
