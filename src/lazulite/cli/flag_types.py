"""What the values of flags may be, and what some are when not given.

For anything else each raises `ArgumentTypeError`, with one line for the user.
"""

from argparse import ArgumentTypeError
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import NoReturn

from lazulite.engine.postgres.dsn import SCHEMES, DatabaseUrl, read_url

COUNT_MAX = 64
DEFAULT_LOCATION = Path("data")
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 10002


def host(text: str) -> str:
    """Return an address without the brackets of IPv6."""
    bare = text.removeprefix("[").removesuffix("]")
    if not bare or any(character.isspace() or character in "/;=" for character in bare):
        raise ArgumentTypeError(f"{text!r} is not an address")
    return bare


def port(text: str) -> int:
    """Return a port."""
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def suffix(text: str) -> str:
    """Return the end of a host's name, in lower case and without dots around it."""
    return _labels(text, "a domain suffix")


def host_name(text: str) -> str:
    """Return a host's name, in lower case and without a dot at its end."""
    return _labels(text, "a host name without scheme and port")


def _labels(text: str, wanted: str) -> str:
    labels = text.strip(".").lower().split(".")
    known = all(label and label.isascii() and label.replace("-", "").replace("_", "").isalnum() for label in labels)
    # After a number, what looks like a name is an IPv4 address.
    if not known or labels[-1].isdigit():
        raise ArgumentTypeError(f"{text!r} is not {wanted}")
    return ".".join(labels)


def database(text: str) -> DatabaseUrl:
    """Return the URL of a database."""
    try:
        return read_url(text)
    except ValueError as error:
        raise ArgumentTypeError(f"the URL {error}") from None


def network(text: str) -> IPv4Network | IPv6Network:
    """Return an address or a network."""
    try:
        return ip_network(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not an address or a network such as 10.0.0.0/8") from None


def no_pfx(_: str) -> NoReturn:
    """Refuse a password, which only a PFX file would need."""
    raise ArgumentTypeError(
        "PFX files are not supported; convert the file to PEM: openssl pkcs12 -in FILE.pfx -nodes -out FILE.pem"
    )


def count(text: str) -> int:
    """Return a small number that is not 0."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= COUNT_MAX):
        raise ArgumentTypeError(f"{text!r} is not a number from 1 to {COUNT_MAX}")
    return int(text)


def store(text: str) -> Path | DatabaseUrl:
    """Return a location, or the URL of a database."""
    return database(text) if text.startswith(tuple(f"{scheme}:" for scheme in SCHEMES)) else Path(text)


def positive(number: type[int] | type[float]) -> Callable[[str], int | float]:
    """Return what reads a number of that type that is above 0 and finite."""

    def read(text: str) -> int | float:
        try:
            value = number(text)
        except ValueError:
            value = 0
        if not 0 < value < 1e9:
            raise ArgumentTypeError(f"{text!r} is not a number above 0")
        return value

    return read
