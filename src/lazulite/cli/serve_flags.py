"""The flags of `lazulite serve` alone, except the location and the address.

Only light modules of the standard library are imported, so that help is printed at once.
"""

import re
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Mapping
from pathlib import Path

from lazulite.cli.address_flags import add_https_ports, add_listening, add_websites
from lazulite.cli.flag_types import (
    Deprecated,
    NoEffect,
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


AZURITE_FLAGS: Mapping[str, tuple[str, int | None, str]] = {
    "oauth": ("LEVEL", None, "bearer tokens are verified, with --oidc-issuer"),
    "disableTelemetry": ("", 0, "the server sends no telemetry"),
    "extentMemoryLimit": ("MB", None, "with --in-memory, the memory of the machine is the limit"),
    "blobKeepAliveTimeout": ("SECONDS", None, "set --keep-alive-seconds for all services"),
    "queueKeepAliveTimeout": ("SECONDS", None, "set --keep-alive-seconds for all services"),
    "tableKeepAliveTimeout": ("SECONDS", None, "set --keep-alive-seconds for all services"),
}
"""Azurite's flag -> the name of its value, the number of its values (None: one), and what is true here instead."""


def add(parser: ArgumentParser) -> None:
    """Add the common flags to a parser; its help has them on the first screen."""
    flag = parser.add_argument
    flag("--in-memory", "--inMemoryPersistence", action="store_true", help="store everything in memory; no files")
    text = f"services to serve ({','.join(SERVICES)})"
    flag("--services", type=services, default=SERVICES, metavar="LIST", help=text)
    add_listening(parser)
    flag("--cert", type=Path, metavar="FILE", help="PEM certificate chain: serve HTTPS")
    flag("--key", type=Path, metavar="FILE", help="PEM private key (in the certificate's file)")
    flag("--workers", type=count, default=1, metavar="N", help="answer requests in N worker processes (1: none)")
    flag("--silent", "-s", action="store_true", help="do not write the request log to stderr")


def add_others(parser: ArgumentParser) -> None:
    """Add the other flags, in groups."""
    _name_flags(parser)
    add_https_ports(parser.add_argument_group("HTTPS beside HTTP").add_argument)
    add_websites(parser)
    _log_flags(parser)
    _ui_flags(parser)
    _process_flags(parser)
    _bearer_flags(parser)
    _limit_flags(parser)
    _partition_flags(parser)
    _emulator_flags(parser)


def _name_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument_group("host names and access").add_argument
    flag(
        "--host-suffix",
        type=suffix,
        action="append",
        default=[],
        metavar="SUFFIX",
        help="take the account from host names ACCOUNT.SUFFIX, as from ACCOUNT.table.localhost; "
        "table.SUFFIX stands for queue.SUFFIX and blob.SUFFIX, too; repeatable",
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
    flag = parser.add_argument_group("seed, processes and clock").add_argument
    text = "have what FILE says before serving: create what is missing, replace what differs, delete nothing"
    flag("--seed", type=Path, metavar="FILE", help=text)
    text = "take commands at this Unix socket, too, such as those of lazulite status"
    flag("--control-socket", type=Path, metavar="PATH", help=text)
    flag(
        "--engine-connections",
        type=count,
        metavar="N",
        help="maximum number of database connections of each process (16)",
    )
    flag(
        "--accept-clock-jump",
        action="store_true",
        help="serve even if the clock jumped, or Timestamps are ahead of it, by more than a day",
    )


def _log_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument_group("logs and metrics").add_argument
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
    text = "record the heads of the last 1,000 requests of each service from the start, for lazulite requests"
    flag("--record-requests", action="store_true", help=text)
    flag("--meter", action="store_true", help="count the traffic of tables, queues and containers, for lazulite heat")
    flag(
        "--analytics-seconds",
        type=positive(float),
        default=60.0,
        metavar="N",
        help="publish the logs of Storage Analytics every N seconds (60)",
    )
    text = "inject the faults of FILE, or of a preset, into requests: see lazulite faults"
    flag("--faults", metavar="FILE", help=text)
    flag("--metrics-host", type=host, metavar="HOST", help=f"address of the metrics port ({DEFAULT_HOST})")


def _ui_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument_group("explorer").add_argument
    text = "serve the explorer, pages for a browser, on this port; 0: any free port"
    flag("--ui-port", type=port, metavar="PORT", help=text)
    flag("--ui-host", type=host, metavar="HOST", help=f"its address ({DEFAULT_HOST}); others need --cert")
    flag("--ui-read-only", action="store_true", help="let the explorer change nothing that is stored")


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


def _partition_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument_group("scalability targets").add_argument
    flag(
        "--targets",
        metavar="NAME",
        help="delay and refuse requests beyond the targets of the cloud: current, study-2010, study-2010-strict, "
        "FILE.toml, or off; implies --meter",
    )
    flag(
        "--time-scale",
        type=positive(float),
        metavar="N",
        help="divide by N the times until ranges of partitions are split, moved and merged (1)",
    )


def _emulator_flags(parser: ArgumentParser) -> None:
    text = "Azurite's spellings of flags, such as --tablePort, are accepted, too."
    emulator = parser.add_argument_group("flags of Azurite", text)
    emulator.add_argument(
        "--skip-api-version-check",
        "--skipApiVersionCheck",
        action="store_true",
        help="no effect: unknown newer versions are always accepted",
    )
    emulator.add_argument(
        "--loose", "-L", action="store_true", help="no effect: unknown headers and options are always accepted"
    )
    for name, (metavar, nargs, instead) in AZURITE_FLAGS.items():
        kebab = re.sub(r"(?=[A-Z])", "-", name).lower()
        emulator.add_argument(
            *dict.fromkeys((f"--{kebab}", f"--{name}")),
            dest=SUPPRESS,
            action=NoEffect,
            nargs=nargs,
            default=SUPPRESS,
            metavar=metavar or None,
            instead=instead,
            help=f"no effect: {instead}",
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
