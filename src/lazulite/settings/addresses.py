"""The services of `lazulite serve`, and where each of them listens.

Only light modules of the standard library are imported, as the parser of the command line needs the names.
"""

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import NamedTuple

TABLE, QUEUE, BLOB = "table", "queue", "blob"
SERVICES = (TABLE, QUEUE, BLOB)
"""The names of all services, in the order in which they are listed for people."""
WEB = "web"
"""The static websites of the Blob service: at an address like a service, which `--web-port` asks for."""

SECONDARY_FORMS: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "url": ((QUEUE, BLOB), True),
    "host": (SERVICES, False),
    "none": ((), True),
}
"""The forms of secondary endpoints in a connection string -> (the services that have one, whether it is a URL).

.NET and Java reject a whole connection string with an endpoint that is no URL. The Python SDKs put the scheme before it
themselves, so `host` is for them. All clients of tables derive theirs, and the Python one cannot use a URL.
"""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORTS = {TABLE: 10002, QUEUE: 10001, BLOB: 10000}
"""The ports of the emulator, which `UseDevelopmentStorage=true` means."""


class ServiceAddress(NamedTuple):
    """Where a service listens."""

    host: str = DEFAULT_HOST
    port: int | None = 0
    """The HTTP port; 0: any free port; None: no HTTP."""
    https_port: int | None = None
    """The HTTPS port; 0 and None as for `port`."""


def addresses_from(args: Namespace, services: Iterable[str]) -> Mapping[str, ServiceAddress]:
    """Return the addresses of services as the flags of `lazulite serve` name them.

    A service on the host and the port of an earlier one also has its HTTPS port.

    Args:
        args: the parsed flags.
        services: to serve, in the order of `SERVICES`.

    Raises:
        ValueError: services share an HTTP port, but not their HTTPS port. The text is one line for people.
    """
    given = vars(args)
    shared: dict[tuple[str, int], int | None] = {}
    addresses: dict[str, ServiceAddress] = {}
    for name in services:
        host, port, https_port = (given[f"{name}_{part}"] for part in ServiceAddress._fields)
        if port:
            https_of_port = shared.setdefault((host, port), https_port)
            if https_port not in (None, https_of_port):
                raise ValueError(
                    f"services on one port must share their HTTPS port, too: leave --{name}-https-port out"
                )
            https_port = https_of_port
        https_alone = args.cert is not None and https_port is None
        addresses[name] = ServiceAddress(host, None, port) if https_alone else ServiceAddress(host, port, https_port)
    return addresses


def by_address(addresses: Mapping[str, ServiceAddress]) -> tuple[tuple[str, ...], ...]:
    """Return the services of each server, in the order of the first ones: those of one address share a server."""
    servers: dict[tuple[ServiceAddress, str], list[str]] = {}
    for name, address in addresses.items():
        fixed = bool(address.port or address.https_port)
        servers.setdefault((address, "" if fixed else name), []).append(name)
    return tuple(map(tuple, servers.values()))
