"""The settings of `lazulite serve`, from flags, environment and account file.

Invariant: the public development key is accepted beyond loopback addresses only with `--allow-development-key`. That
holds for any account that has this key, wherever the account is configured.
"""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from urllib.parse import urlsplit

from lazulite.auth.accounts.account import Account, AccountDirectory, parse_accounts
from lazulite.auth.accounts.file_store import AccountFile
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.addressing import HOST_SUFFIX, host_suffix, tells_service
from lazulite.server.copy_sources.hosts import SourceHost
from lazulite.server.limits import Limits
from lazulite.settings.addresses import BLOB, SERVICES, TABLE, WEB, ServiceAddress, addresses_from, by_address
from lazulite.settings.bearer import BearerSettings, bearer_settings_from
from lazulite.settings.database import database_settings_from
from lazulite.settings.extras import require_extra
from lazulite.settings.partitions import NO_TARGETS, PartitionSettings, partition_settings_from
from lazulite.settings.tracing import trace_exporters_from

ACCOUNT_VARIABLES = ("LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS")
"""Environment variables with accounts. The first that is set is used."""


class ConfigError(ValueError):
    """The settings are invalid or incompatible. The text is one line for people, without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a server."""

    location: Path | None = None
    """The directory of store and accounts; None: in memory, or in `database`."""
    services: tuple[str, ...] = SERVICES
    """The services to serve, in the order of `SERVICES`; then `web`, if static websites are served."""
    addresses: Mapping[str, ServiceAddress] = field(default_factory=dict)
    """Where services listen; one that is missing has any free port of 127.0.0.1."""
    cert: Path | None = None
    """The certificate chain's file; never None with an HTTPS port."""
    key: Path | None = None
    """The private key's file; None: the key is in the file `cert`."""
    host_suffixes: tuple[str, ...] = (HOST_SUFFIX,)
    """The domain suffixes after an account in a host name of any service; empty: path style only."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names accepted while the development key is in use, besides addresses and `localhost`."""
    allowed_suffixes: tuple[str, ...] = ()
    """Domain suffixes under which all host names are accepted, likewise."""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """The networks of proxies whose `X-Forwarded-…` headers are trusted."""
    copy_source_hosts: tuple[SourceHost, ...] = ()
    """The hosts from which sources of copies may be fetched."""
    control_socket: Path | None = None
    """Where commands reach the server, too, beside a location; None: only there."""
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
    record_requests: bool = False
    """Whether the last requests are recorded from the start."""
    meter: bool = False
    """Whether the traffic of resources is counted."""
    partitions: PartitionSettings = NO_TARGETS
    """Range partitions and scalability targets."""
    analytics_seconds: float = 60.0
    """The time between two blobs of Storage Analytics' logs."""
    faults: str | None = None
    """The file, or the preset, with the rules of faults to begin with; None: no rules."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """The port of the Prometheus metrics; 0: any free port; None: no metrics."""
    ui_host: str = "127.0.0.1"
    """Where the explorer listens, if it is opened."""
    ui_port: int | None = None
    """The port of the explorer; 0: any free port; None: it is not open from the start."""
    ui_read_only: bool = False
    """Whether the explorer changes nothing that is stored."""
    trace_exporters: tuple[str, ...] = ()
    """The OpenTelemetry exporters of spans, by their names in its variables; empty: no spans."""
    bearer: BearerSettings | None = None
    """The rules of bearer tokens; None: bearer tokens are rejected."""

    def address(self, service: str) -> ServiceAddress:
        """Return where a service listens."""
        return self.addresses.get(service, ServiceAddress())

    @property
    def servers(self) -> tuple[tuple[str, ...], ...]:
        """The services of each server. The hosts of requests tell which service of a server they are for."""
        return by_address({name: self.address(name) for name in self.services})

    def shares_port(self, service: str) -> bool:
        """Return whether another service has the same address."""
        return any(service in names and len(names) > 1 for names in self.servers)

    def host_suffixes_of(self, service: str) -> tuple[str, ...]:
        """Return the domain suffixes after an account in a host name of a service."""
        return tuple(dict.fromkeys(host_suffix(service, suffix) for suffix in self.host_suffixes))

    def allowed_suffixes_of(self, service: str) -> tuple[str, ...]:
        """Return the suffixes under which a service accepts all host names."""
        return tuple(host_suffix(service, suffix) for suffix in self.allowed_suffixes)


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
    database = database_from(args, environ)
    services = _services_from(args)
    with _config_errors():
        addresses, bearer = addresses_from(args, services), bearer_settings_from(args)
        partitions = partition_settings_from(args)
        if args.metrics_port is not None:
            require_extra("metrics", "--metrics-port")
    if bearer is not None:
        _check_issuer(bearer)
    settings = Settings(
        location=None if args.in_memory or database is not None else args.location,
        services=services,
        addresses=addresses,
        cert=args.cert,
        key=args.key,
        host_suffixes=() if args.path_style_only else (HOST_SUFFIX, *args.host_suffix),
        allowed_hosts=tuple(args.allowed_host),
        allowed_suffixes=tuple(args.host_suffix),
        trusted_proxies=tuple(args.trusted_proxy),
        copy_source_hosts=tuple(args.copy_source_host),
        control_socket=args.control_socket,
        database=database,
        workers=args.workers,
        accounts=accounts_from(environ),
        allow_development_key=args.allow_development_key,
        accept_clock_jump=args.accept_clock_jump,
        log_requests=not args.silent,
        debug_file=args.debug,
        page_seconds=args.page_seconds,
        limits=Limits(**{each.name: given[each.name] for each in fields(Limits) if each.name in given}),
        record_requests=args.record_requests,
        meter=args.meter or args.targets is not None,
        partitions=partitions,
        analytics_seconds=args.analytics_seconds,
        faults=args.faults,
        metrics_host=args.metrics_host or "127.0.0.1",
        metrics_port=args.metrics_port,
        ui_host=args.ui_host or "127.0.0.1",
        ui_port=args.ui_port,
        ui_read_only=args.ui_read_only,
        trace_exporters=trace_exporters_from(environ),
        bearer=bearer,
    )
    if any(len(names) > 1 for names in settings.servers):
        _check_shared_port(settings)
    if not is_loopback(settings.ui_host) and settings.cert is None:
        raise ConfigError(f"the explorer listens on {settings.ui_host} by HTTPS alone: pass --cert, too")
    return settings


def _services_from(args: Namespace) -> tuple[str, ...]:
    """Return what to serve: the services, and websites, which are blobs."""
    services: tuple[str, ...] = args.services
    if args.web_port is None:
        return services
    if BLOB not in services:
        raise ConfigError("--web-port needs the service blob")
    return (*services, WEB)


@contextmanager
def _config_errors() -> Iterator[None]:
    """Raise the `ValueError` of a part of the settings as a `ConfigError`."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _check_shared_port(settings: Settings) -> None:
    """Reject host names by which the services of one port cannot be distinguished.

    Raises:
        ConfigError: see there.
    """
    if not settings.host_suffixes:
        raise ConfigError("services on one port are distinguished by host names: leave --path-style-only out")
    for suffix in settings.host_suffixes:
        if not tells_service(suffix):
            raise ConfigError(
                f"services on one port need a --host-suffix that begins with {TABLE}., such as {TABLE}.{suffix}"
            )


def database_from(args: Namespace, environ: Mapping[str, str]) -> PostgresSettings | None:
    """Return the database of store and accounts; None for a location or memory.

    Raises:
        ConfigError: see `database_settings_from`.
    """
    with _config_errors():
        return database_settings_from(args, environ)


def _check_issuer(bearer: BearerSettings) -> None:
    """Reject an issuer whose keys would come over the network without TLS."""
    issuer = urlsplit(bearer.rules.issuer)
    if bearer.jwks is None and issuer.scheme != "https" and not is_loopback(issuer.hostname or ""):
        raise ConfigError("--oidc-issuer must use https, unless the issuer is on this machine")


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


DEVELOPMENT_OFF = (
    "devstoreaccount1 with its public key is off, as there is another account now; "
    "to have both: lazulite account add devstoreaccount1"
)
"""The line about the first account, in the command that adds it and in the log of the running server."""


def account_file(location: Path) -> AccountFile:
    """Return the account file of a location."""
    return AccountFile(location / "accounts.json")


BACKUP_MANIFEST = "backup.json"
"""The file that identifies a directory as a backup: the manifest of its other files."""


def store_path(location: Path) -> Path:
    """Return the directory of the store in a location."""
    return location / "store"


def replica_path(location: Path) -> Path:
    """Return the directory in which workers keep what RocksDB notes about their replicas of the store."""
    return location / "replicas"


def content_path(location: Path) -> Path:
    """Return the directory of the contents in a location."""
    return location / "content"


def check_development_key(settings: Settings, directory: AccountDirectory) -> None:
    """Reject the development key on an address that other machines can reach.

    Raises:
        ConfigError: an account has the key, the address is not a loopback address, and the key is not allowed there.
    """
    hosts = [settings.address(service).host for service in settings.services]
    open_hosts = [host for host in hosts if not is_loopback(host)]
    if directory.development and not settings.allow_development_key and open_hosts:
        raise ConfigError(
            f"the development key is public, so it is not accepted on {open_hosts[0]}: "
            "create an account (lazulite account add NAME, or LAZULITE_ACCOUNTS=NAME:KEY), "
            "or pass --allow-development-key"
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
