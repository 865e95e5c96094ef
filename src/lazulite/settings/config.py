"""The settings of `lazulite serve`, from flags, environment and account file.

Invariant: the public development key is accepted beyond loopback addresses only with `--allow-development-key`. That
holds for any account that has this key, wherever the account is configured.
"""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from urllib.parse import urlsplit

from lazulite.auth.accounts.account import Account, AccountDirectory, parse_accounts
from lazulite.auth.accounts.file_store import AccountFile
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.addressing import HOST_SUFFIX, host_suffix
from lazulite.server.limits import Limits
from lazulite.settings.bearer import BearerSettings, bearer_settings_from
from lazulite.settings.database import database_settings_from
from lazulite.settings.extras import require_extra
from lazulite.settings.tracing import trace_exporters_from

ACCOUNT_VARIABLES = ("LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS")
"""Environment variables with accounts. The first that is set is used."""

TABLE, QUEUE = "table", "queue"
SERVICES = (TABLE, QUEUE)
"""The names of all services."""


class ConfigError(ValueError):
    """The settings are invalid or incompatible. The text is one line for people, without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a server."""

    location: Path | None = None
    """The directory of store and accounts; None: in memory, or in `database`."""
    host: str = "127.0.0.1"
    port: int | None = 0
    """The HTTP port; 0: any free port; None: no HTTP."""
    https_port: int | None = None
    """The HTTPS port; 0 and None as for `port`."""
    cert: Path | None = None
    """The certificate chain's file; never None with an HTTPS port."""
    key: Path | None = None
    """The private key's file; None: the key is in the file `cert`."""
    services: tuple[str, ...] = SERVICES
    """The services to serve, in the order of `SERVICES`."""
    queue_host: str = "127.0.0.1"
    queue_port: int | None = 0
    """The HTTP port of the Queue service; 0 and None as for `port`."""
    queue_https_port: int | None = None
    """The HTTPS port of the Queue service; 0 and None as for `port`."""
    host_suffixes: tuple[str, ...] = (HOST_SUFFIX,)
    """The domain suffixes after an account in a host name; empty: path style only."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names accepted while the development key is in use, besides addresses and `localhost`."""
    allowed_suffixes: tuple[str, ...] = ()
    """Domain suffixes under which all host names are accepted, likewise."""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """The networks of proxies whose `X-Forwarded-…` headers are trusted."""
    database: PostgresSettings | None = None
    """The database of store and accounts, in place of a location."""
    workers: int = 1
    """The number of worker processes beside the primary; 1: a single process."""
    accounts: Mapping[str, Account] = field(default_factory=dict)
    """The accounts of the environment."""
    allow_development_key: bool = False
    accept_clock_jump: bool = False
    """Whether to serve if the clock jumped, or stored Timestamps are far ahead of it."""
    log_requests: bool = True
    """Whether to log one line per request to stderr."""
    debug_file: Path | None = None
    """The file for the heads of requests and responses."""
    page_seconds: float = 5.0
    """The time limit for one page of a query, in seconds."""
    limits: Limits = field(default_factory=Limits)
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """The port of the Prometheus metrics; 0: any free port; None: no metrics."""
    trace_exporters: tuple[str, ...] = ()
    """The OpenTelemetry exporters of spans, by their names in its variables; empty: no spans."""
    bearer: BearerSettings | None = None
    """The rules of bearer tokens; None: bearer tokens are rejected."""

    @property
    def shares_port(self) -> bool:
        """Whether the services share one address, and the host of a request tells which service it is for."""
        owns = [settings_of(self, name) for name in self.services]
        addresses = {(own.host, own.port, own.https_port) for own in owns}
        return len(owns) > len(addresses) and bool(owns[0].port or owns[0].https_port)

    @property
    def servers(self) -> tuple[tuple[str, ...], ...]:
        """The services of each address."""
        return (self.services,) if self.shares_port else tuple((name,) for name in self.services)


def settings_from(args: Namespace, environ: Mapping[str, str]) -> Settings:
    """Return the settings of `lazulite serve`.

    Args:
        args: the parsed flags.
        environ: the environment.

    Raises:
        ConfigError: the accounts in the environment are invalid, the flags are incompatible, or a flag needs an extra
            that is not installed.
    """
    given = vars(args)
    port, https_port = _ports(args, args.table_port, args.https_port)
    share = (args.queue_host, args.queue_port) == (args.table_host, args.table_port) and args.table_port != 0
    queue_https = args.https_port if share and args.queue_https_port is None else args.queue_https_port
    queue_port, queue_https_port = _ports(args, args.queue_port, queue_https)
    database = database_from(args, environ)
    if args.metrics_port is not None:
        _require_metrics()
    settings = Settings(
        location=None if args.in_memory or database is not None else args.location,
        host=args.table_host,
        port=port,
        https_port=https_port,
        services=args.services,
        queue_host=args.queue_host,
        queue_port=queue_port,
        queue_https_port=queue_https_port,
        cert=args.cert,
        key=args.key,
        host_suffixes=() if args.path_style_only else (HOST_SUFFIX, *args.host_suffix),
        allowed_hosts=tuple(args.allowed_host),
        allowed_suffixes=tuple(args.host_suffix),
        trusted_proxies=tuple(args.trusted_proxy),
        database=database,
        workers=args.workers,
        accounts=accounts_from(environ),
        allow_development_key=args.allow_development_key,
        accept_clock_jump=args.accept_clock_jump,
        log_requests=not args.silent,
        debug_file=args.debug,
        page_seconds=args.page_seconds,
        limits=Limits(**{each.name: given[each.name] for each in fields(Limits) if each.name in given}),
        metrics_host=args.metrics_host or "127.0.0.1",
        metrics_port=args.metrics_port,
        trace_exporters=trace_exporters_from(environ),
        bearer=_bearer_from(args),
    )
    if share and settings.services == SERVICES:
        _check_shared_port(settings)
    return settings


def _ports(args: Namespace, port: int, https_port: int | None) -> tuple[int | None, int | None]:
    """Return the HTTP and the HTTPS port of a service: with a certificate alone, its port is for HTTPS."""
    return (None, port) if args.cert is not None and https_port is None else (port, https_port)


def _check_shared_port(settings: Settings) -> None:
    """Reject flags by which the services of one port cannot be distinguished.

    Raises:
        ConfigError: see there.
    """
    if not settings.shares_port:
        raise ConfigError("services on one port must share their HTTPS port, too: leave --queue-https-port out")
    if not settings.host_suffixes:
        raise ConfigError("services on one port are distinguished by host names: leave --path-style-only out")
    for suffix in settings.host_suffixes:
        if host_suffix(QUEUE, suffix) == suffix:
            raise ConfigError(
                f"services on one port need a --host-suffix that begins with {TABLE}., such as {TABLE}.{suffix}"
            )


def _require_metrics() -> None:
    try:
        require_extra("metrics", "--metrics-port")
    except ValueError as error:
        raise ConfigError(str(error)) from None


def database_from(args: Namespace, environ: Mapping[str, str]) -> PostgresSettings | None:
    """Return the database of store and accounts; None for a location or memory.

    Raises:
        ConfigError: see `database_settings_from`.
    """
    try:
        return database_settings_from(args, environ)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _bearer_from(args: Namespace) -> BearerSettings | None:
    try:
        bearer = bearer_settings_from(args)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if bearer is not None and bearer.jwks is None:
        issuer = urlsplit(bearer.rules.issuer)
        if issuer.scheme != "https" and not is_loopback(issuer.hostname or ""):
            raise ConfigError("--oidc-issuer must use https, unless the issuer is on this machine")
    return bearer


def accounts_from(environ: Mapping[str, str]) -> dict[str, Account]:
    """Return the accounts of the environment; empty if it has no variable for them.

    Raises:
        ConfigError: the variable's value is not `name:key1[:key2];…`.
    """
    for variable in ACCOUNT_VARIABLES:
        text = environ.get(variable, "").strip()
        if not text:
            continue
        try:
            accounts = parse_accounts(text)
        except ValueError as error:
            # Not chained: the cause may quote a key.
            raise ConfigError(f"{variable}: {error}") from None
        if not accounts:
            raise ConfigError(f"{variable} contains no account; expected name:key1[:key2];…")
        return accounts
    return {}


def account_file(location: Path) -> AccountFile:
    """Return the account file of a location."""
    return AccountFile(location / "accounts.json")


BACKUP_MANIFEST = "backup.json"
"""The file that identifies a directory as a backup: the manifest of its other files."""


def store_path(location: Path) -> Path:
    """Return the directory of the store in a location."""
    return location / "store"


def check_development_key(settings: Settings, directory: AccountDirectory) -> None:
    """Reject the development key on an address that other machines can reach.

    Raises:
        ConfigError: an account has the key, the address is not a loopback address, and the key is not allowed there.
    """
    hosts = [settings_of(settings, service).host for service in settings.services]
    open_hosts = [host for host in hosts if not is_loopback(host)]
    if directory.development and not settings.allow_development_key and open_hosts:
        raise ConfigError(
            f"the development key is public, so it is not accepted on {open_hosts[0]}: "
            "create an account (lazulite account add NAME) or pass --allow-development-key"
        )


def is_loopback(host: str) -> bool:
    """Return whether an address is a loopback address. Of the names, only `localhost` is one."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback if mapped is None else mapped.is_loopback


def settings_of(settings: Settings, service: str) -> Settings:
    """Return the settings of a process as one of its services sees them: with its address and host suffixes."""
    if service == TABLE:
        return settings
    return replace(
        settings,
        host=settings.queue_host,
        port=settings.queue_port,
        https_port=settings.queue_https_port,
        host_suffixes=tuple(host_suffix(service, suffix) for suffix in settings.host_suffixes),
        allowed_suffixes=tuple(host_suffix(service, suffix) for suffix in settings.allowed_suffixes),
    )
