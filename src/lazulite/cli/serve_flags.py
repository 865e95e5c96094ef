"""The flags of `lazulite serve` that no other command has, and that are not about where the store is.

Light, as `parser` is: only Python's own modules here.
"""

from argparse import SUPPRESS, ArgumentParser
from pathlib import Path

from lazulite.cli.flag_types import DEFAULT_HOST, count, host, host_name, network, no_pfx, port, positive, suffix

LIMIT_FLAGS = {
    "--connections": ("connections", int, "connections at a time (20000)"),
    "--keep-alive-seconds": ("keep_alive_idle_seconds", float, "how long a connection may rest (120)"),
    "--header-read-seconds": ("header_read_seconds", float, "how long a request's head may take to come (30)"),
    "--body-read-seconds": ("body_read_seconds", float, "how long a request's body may take to come (60)"),
    "--request-seconds": ("request_seconds", float, "how long answering a request may take (30)"),
    "--drain-delay-seconds": (
        "drain_delay_seconds",
        float,
        "how long SIGTERM lets all go on while /health says 503, for load balancers (0)",
    ),
    "--drain-seconds": ("drain_seconds", float, "how long SIGTERM waits for requests in flight (25)"),
}
"""Flag -> the field of `server.limits.Limits` that it sets, its type, its help (with the default)."""


def add(parser: ArgumentParser) -> None:
    """Add them."""
    parser.add_argument(
        "--in-memory", "--inMemoryPersistence", action="store_true", help="keep nothing on disk, and read nothing there"
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
    flag("--cert", type=Path, metavar="FILE", help="PEM certificate chain; the table port then speaks HTTPS")
    flag("--key", type=Path, metavar="FILE", help="its PEM key, not encrypted (taken from the certificate's file)")
    flag("--https-port", type=port, metavar="PORT", help="speak HTTPS here, and HTTP on the table port")


def _address_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument
    flag(
        "--host-suffix",
        type=suffix,
        action="append",
        default=[],
        metavar="SUFFIX",
        help="ACCOUNT.SUFFIX in a URL means the account, as ACCOUNT.table.localhost does; repeatable",
    )
    flag(
        "--path-style-only",
        "--disable-product-style-url",
        "--disableProductStyleUrl",
        action="store_true",
        help="the account is always the first segment of the path",
    )
    flag(
        "--allowed-host",
        type=host_name,
        action="append",
        default=[],
        metavar="NAME",
        help="answer requests for this host also while the development key is served; repeatable",
    )
    flag(
        "--trusted-proxy",
        type=network,
        action="append",
        default=[],
        metavar="CIDR",
        help="believe X-Forwarded-Proto, -Host and -For of these addresses; repeatable",
    )
    flag(
        "--allow-development-key",
        action="store_true",
        help="serve the key that everybody knows on an address that is not loopback",
    )


def _process_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument
    flag(
        "--workers",
        type=count,
        default=1,
        metavar="N",
        help="answer from N processes, beside the one that has the store or watches them; 1: one process does all (1)",
    )
    flag(
        "--engine-connections",
        type=count,
        metavar="N",
        help="connections to the database at a time, of each process (16)",
    )


def _clock_flags(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--accept-clock-jump",
        action="store_true",
        help="serve although the clock has jumped, or Timestamps are ahead of it, by more than a day",
    )


def _log_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument
    flag("--silent", "-s", action="store_true", help="write no request log to stderr")
    flag(
        "--debug",
        "-d",
        type=Path,
        metavar="FILE",
        help="append the heads of requests and answers to FILE, without secrets",
    )
    flag("--metrics-port", type=port, metavar="PORT", help="answer GET /metrics for Prometheus here; 0: any free port")
    flag("--metrics-host", type=host, metavar="HOST", help=f"address for that ({DEFAULT_HOST})")


def _limit_flags(parser: ArgumentParser) -> None:
    limits = parser.add_argument_group("limits")
    for name, (field, type_, text) in LIMIT_FLAGS.items():
        limits.add_argument(name, dest=field, type=positive(type_), default=SUPPRESS, metavar="N", help=text)
    limits.add_argument(
        "--page-seconds",
        type=positive(float),
        default=5.0,
        metavar="N",
        help="how long a query looks for one page before it gives a continuation token (5)",
    )


def _emulator_flags(parser: ArgumentParser) -> None:
    emulator = parser.add_argument_group("accepted for the emulator's sake, without effect")
    emulator.add_argument(
        "--skip-api-version-check",
        "--skipApiVersionCheck",
        action="store_true",
        help="versions newer than Lazulite are always served",
    )
    emulator.add_argument("--loose", "-L", action="store_true", help="unknown headers and options are never an error")
    emulator.add_argument("--pwd", type=no_pfx, metavar="PASSWORD", help="refused: PFX files are not read, only PEM")


def _bearer_flags(parser: ArgumentParser) -> None:
    flag = parser.add_argument_group("bearer tokens").add_argument
    flag("--oidc-issuer", metavar="URL", help="accept the tokens of this OpenID Connect issuer, the exact iss")
    flag("--oidc-jwks", type=Path, metavar="FILE", help="its keys, instead of asking it for them")
    for name, metavar, text in (
        ("--oidc-audience", "AUD", "aud of the tokens (https://storage.azure.com)"),
        ("--oidc-role-claim", "NAME", "claim that holds roles (roles)"),
        ("--oidc-reader", "VALUE", "value that makes a Storage Table Data Reader (that name, or the role's id)"),
        ("--oidc-contributor", "VALUE", "value that makes a Storage Table Data Contributor (likewise)"),
    ):
        flag(name, action="append", default=[], metavar=metavar, help=f"{text}; repeatable")
    flag("--allow-bearer-over-http", action="store_true", help="accept tokens on connections without TLS")
