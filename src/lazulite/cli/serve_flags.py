"""The flags of `lazulite serve` alone, except the location and the address.

Only light modules of the standard library are imported, so that help is printed at once.
"""

from argparse import SUPPRESS, ArgumentParser
from pathlib import Path

from lazulite.cli.flag_types import (
    Deprecated,
    count,
    host,
    host_name,
    network,
    no_pfx,
    port,
    positive,
    services,
    source_host,
    suffix,
)
from lazulite.settings.addresses import DEFAULT_HOST, SERVICES

LIMIT_FLAGS = {
    "--connections": ("connections", int, "maximum number of open connections (20000)"),
    "--keep-alive-seconds": ("keep_alive_idle_seconds", float, "timeout for an idle connection (120)"),
    "--header-read-seconds": ("header_read_seconds", float, "timeout for receiving a request's head (30)"),
    "--body-stall-seconds": ("body_stall_seconds", float, "timeout for the next bytes of a request body (30)"),
    "--write-stall-seconds": (
        "write_stall_seconds",
        float,
        "timeout for a client that takes nothing of its response (30)",
    ),
    "--request-seconds": ("request_seconds", float, "timeout for processing a request (30)"),
    "--drain-delay-seconds": (
        "drain_delay_seconds",
        float,
        "after SIGTERM, serve this long with /health at 503, for load balancers (0)",
    ),
    "--drain-seconds": ("drain_seconds", float, "after that, wait this long for running requests (25)"),
}
"""Flag -> (the field of `server.limits.Limits` that it sets, its type, its help with the default)."""

ROLE_FLAGS = {
    "reader": "Storage Table Data Reader",
    "contributor": "Storage Table Data Contributor",
    "queue-reader": "Storage Queue Data Reader",
    "queue-contributor": "Storage Queue Data Contributor",
    "queue-processor": "Storage Queue Data Message Processor",
    "queue-sender": "Storage Queue Data Message Sender",
    "queue-delegator": "Storage Queue Delegator",
    "blob-reader": "Storage Blob Data Reader",
    "blob-contributor": "Storage Blob Data Contributor",
    "blob-owner": "Storage Blob Data Owner",
    "blob-delegator": "Storage Blob Delegator",
}
"""`flag` and `title` of each role (`auth.bearer.rules.Role`)."""

DEPRECATED_LIMIT_FLAGS = {"--body-read-seconds": ("--body-stall-seconds", "body_stall_seconds")}
"""Flag -> its successor, whose meaning differs, and that one's field. It bounded the time for a whole body."""


def add(parser: ArgumentParser) -> None:
    """Add the flags to a parser."""
    parser.add_argument(
        "--in-memory",
        "--inMemoryPersistence",
        action="store_true",
        help="store everything in memory; read and write no files",
    )
    parser.add_argument(
        "--services",
        type=services,
        default=SERVICES,
        metavar="LIST",
        help=f"services to serve, separated by commas ({','.join(SERVICES)})",
    )
    _certificate_flags(parser)
    _address_flags(parser)
    _process_flags(parser)
    _clock_flags(parser)
    _log_flags(parser)
    _bearer_flags(parser)
    _limit_flags(parser)
    _emulator_flags(parser)


def _certificate_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument
    flag("--cert", type=Path, metavar="FILE", help="PEM certificate chain; the port of each service then serves HTTPS")
    flag("--key", type=Path, metavar="FILE", help="unencrypted PEM private key (default: in the certificate's file)")


def _address_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument
    flag(
        "--host-suffix",
        type=suffix,
        action="append",
        default=[],
        metavar="SUFFIX",
        help="take the account from host names ACCOUNT.SUFFIX, as from ACCOUNT.table.localhost; repeatable",
    )
    flag(
        "--path-style-only",
        "--disable-product-style-url",
        "--disableProductStyleUrl",
        action="store_true",
        help="always take the account from the first segment of the path",
    )
    flag(
        "--allowed-host",
        type=host_name,
        action="append",
        default=[],
        metavar="NAME",
        help="accept this Host header even while the development key is in use; repeatable",
    )
    flag(
        "--trusted-proxy",
        type=network,
        action="append",
        default=[],
        metavar="CIDR",
        help="trust X-Forwarded-Proto, -Host and -For from these addresses; repeatable",
    )
    flag(
        "--copy-source-host",
        type=source_host,
        action="append",
        default=[],
        metavar="HOST",
        help="fetch sources of copies from this host name, *.DOMAIN, address or network (none); repeatable",
    )
    flag(
        "--allow-development-key",
        action="store_true",
        help="accept the public development key on addresses other than loopback",
    )


def _process_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument
    flag(
        "--workers",
        type=count,
        default=1,
        metavar="N",
        help="answer requests in N worker processes beside the primary; 1: a single process (1)",
    )
    flag(
        "--engine-connections",
        type=count,
        metavar="N",
        help="maximum number of database connections of each process (16)",
    )


def _clock_flags(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--accept-clock-jump",
        action="store_true",
        help="serve even if the clock jumped, or Timestamps are ahead of it, by more than a day",
    )


def _log_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument
    flag("--silent", "-s", action="store_true", help="do not write the request log to stderr")
    flag(
        "--debug",
        "-d",
        type=Path,
        metavar="FILE",
        help="append the heads of requests and responses to FILE, without secrets",
    )
    flag(
        "--metrics-port",
        type=port,
        metavar="PORT",
        help="serve Prometheus metrics at /metrics on this port; 0: any free port",
    )
    flag("--metrics-host", type=host, metavar="HOST", help=f"address of the metrics port ({DEFAULT_HOST})")


def _limit_flags(parser: ArgumentParser) -> None:
    limits = parser.add_argument_group("limits")
    for name, (field, type_, text) in LIMIT_FLAGS.items():
        limits.add_argument(name, dest=field, type=positive(type_), default=SUPPRESS, metavar="N", help=text)
    for name, (successor, dest) in DEPRECATED_LIMIT_FLAGS.items():
        limits.add_argument(
            name,
            action=Deprecated,
            successor=successor,
            dest=dest,
            type=positive(float),
            default=SUPPRESS,
            metavar="N",
            help=f"deprecated: sets {successor}",
        )
    limits.add_argument(
        "--page-seconds",
        type=positive(float),
        default=5.0,
        metavar="N",
        help="time limit for one page of a query; then a continuation token is returned (5)",
    )


def _emulator_flags(parser: ArgumentParser) -> None:
    emulator = parser.add_argument_group("flags of Azurite")
    emulator.add_argument(
        "--skip-api-version-check",
        "--skipApiVersionCheck",
        action="store_true",
        help="no effect: unknown newer versions are always accepted",
    )
    emulator.add_argument(
        "--loose", "-L", action="store_true", help="no effect: unknown headers and options are always accepted"
    )
    emulator.add_argument(
        "--pwd", type=no_pfx, metavar="PASSWORD", help="rejected: use a PEM certificate instead of PFX"
    )


def _bearer_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument_group("bearer tokens").add_argument
    flag("--oidc-issuer", metavar="URL", help="accept tokens of this OpenID Connect issuer; must equal the claim iss")
    flag("--oidc-jwks", type=Path, metavar="FILE", help="read the issuer's keys from FILE instead of fetching them")
    for name, metavar, text in (
        ("--oidc-audience", "AUD", "accepted claim aud (https://storage.azure.com)"),
        ("--oidc-role-claim", "NAME", "claim that lists the roles (roles)"),
        *(
            (f"--oidc-{flag}", "VALUE", f"role value for {title} (that name, or the role's id)")
            for flag, title in ROLE_FLAGS.items()
        ),
    ):
        flag(name, action="append", default=[], metavar=metavar, help=f"{text}; repeatable")
    flag("--allow-bearer-over-http", action="store_true", help="accept tokens over connections without TLS")
