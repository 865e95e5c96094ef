"""Settings: what flags, environment and account file make together.

Invariant: the development key, which everybody knows, is never served beyond this machine unless that was asked for,
whatever the account that holds it is called and wherever it was configured.
"""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from urllib.parse import urlsplit

from lazulite.auth.accounts.account import Account, AccountDirectory, parse_accounts
from lazulite.auth.accounts.file_store import AccountFile
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.addressing import HOST_SUFFIX
from lazulite.server.limits import Limits
from lazulite.settings.bearer import BearerSettings, bearer_settings_from
from lazulite.settings.database import database_settings_from
from lazulite.settings.extras import require_extra

ACCOUNT_VARIABLES = ("LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS")
"""Environment variables with accounts; the first that is set counts."""

TRACE_ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Environment variables that say where spans go."""
TRACE_PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
TRACE_PROTOCOL = "http/protobuf"
"""The one protocol to send them by."""


class ConfigError(ValueError):
    """The settings do not go together. The text is one line for people, without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to serve."""

    location: Path | None = None
    """The directory of everything durable; None keeps everything in memory, or in a database."""
    host: str = "127.0.0.1"
    port: int | None = 0
    """For plain HTTP; 0: any that is free; None: none."""
    https_port: int | None = None
    """For HTTPS, the same."""
    cert: Path | None = None
    """The file of the certificate; there is one if there is a port for HTTPS."""
    key: Path | None = None
    """The file of its key; None: the certificate's own."""
    host_suffixes: tuple[str, ...] = (HOST_SUFFIX,)
    """What follows an account in a host name; none: accounts are addressed in the path only."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that are answered also while the development key is served, beside addresses and `localhost`."""
    allowed_suffixes: tuple[str, ...] = ()
    """Names that are, together with all names below them."""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """The networks of proxies whose `X-Forwarded-` headers count."""
    database: PostgresSettings | None = None
    """The database of everything durable, in place of a location."""
    workers: int = 1
    """Processes that answer requests, beside one that has the store; 1: that one answers them itself."""
    accounts: Mapping[str, Account] = field(default_factory=dict)
    """The accounts of the environment."""
    allow_development_key: bool = False
    accept_clock_jump: bool = False
    """Whether stamps may be far ahead of the clock, and the clock far ahead of the time that went by."""
    log_requests: bool = True
    """One line a request on stderr."""
    debug_file: Path | None = None
    """Where the heads of requests and answers are logged."""
    page_seconds: float = 5.0
    """How long a query looks for one page."""
    limits: Limits = field(default_factory=Limits)
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """For Prometheus; 0: any free port; None: none."""
    trace_exporters: tuple[str, ...] = ()
    """Where OpenTelemetry's spans go, by the names of its variables; none: there are no spans."""
    bearer: BearerSettings | None = None
    """Whose bearer tokens are accepted; None: nobody's."""


def settings_from(args: Namespace, environ: Mapping[str, str]) -> Settings:
    """Return the settings of `lazulite serve`.

    Args:
        args: the parsed flags.
        environ: the environment.

    Raises:
        ConfigError: the accounts in the environment cannot be read, the flags do not go together, or one of them needs
            an extra that is not installed.
    """
    given = vars(args)
    port, https_port = args.table_port, args.https_port
    if args.cert is not None and https_port is None:
        port, https_port = None, args.table_port
    database = database_from(args, environ)
    if args.metrics_port is not None:
        _require_metrics()
    return Settings(
        location=None if args.in_memory or database is not None else args.location,
        host=args.table_host,
        port=port,
        https_port=https_port,
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


def trace_exporters_from(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the exporters of spans that OpenTelemetry's variables ask for; an endpoint alone means `otlp`.

    What is asked for by another protocol than `TRACE_PROTOCOL` is called so.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ()
    default = "otlp" if any(environ.get(name, "").strip() for name in TRACE_ENDPOINT_VARIABLES) else ""
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip() or default
    protocols = (environ.get(name, "").strip() for name in TRACE_PROTOCOL_VARIABLES)
    protocol = next(filter(None, protocols), TRACE_PROTOCOL)
    otlp = "otlp" if protocol == TRACE_PROTOCOL else f"otlp by {protocol}"
    names = [otlp if name.strip() == "otlp" else name.strip() for name in named.split(",")]
    return tuple(dict.fromkeys(name for name in names if name not in ("", "none")))


def _require_metrics() -> None:
    try:
        require_extra("metrics", "--metrics-port")
    except ValueError as error:
        raise ConfigError(str(error)) from None


def database_from(args: Namespace, environ: Mapping[str, str]) -> PostgresSettings | None:
    """Return the database that has data and accounts, None if a location (or memory) has them.

    Raises:
        ConfigError: as `database_settings_from`.
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
    """Return the accounts of the environment, none if it has no variable for them.

    Raises:
        ConfigError: the variable's text is not `name:key1[:key2];…`.
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


def store_path(location: Path) -> Path:
    """Return the engine's directory at a location."""
    return location / "store"


def check_development_key(settings: Settings, directory: AccountDirectory) -> None:
    """Refuse the development key on an address that others can reach.

    Raises:
        ConfigError: one of the accounts has it, the address is not a loopback one, and nobody said that it is meant.
    """
    if directory.development and not settings.allow_development_key and not is_loopback(settings.host):
        raise ConfigError(
            f"the development key is public, so it is not accepted on {settings.host}: "
            "create an account (lazulite account add NAME) or pass --allow-development-key"
        )


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address; of names, only `localhost` is known to be such."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback if mapped is None else mapped.is_loopback
