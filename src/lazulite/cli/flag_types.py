"""Parse the values of flags, and name some defaults.

Each function raises `ArgumentTypeError`, with one line for the user, for a value that is not allowed.
"""

import sys
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, NoReturn

from lazulite.auth.accounts.switches import REHYDRATE_SECONDS_MAX, RETENTION_DAYS_MAX
from lazulite.engine.postgres.dsn import SCHEMES, DatabaseUrl, read_url
from lazulite.settings.addresses import SERVICES

COUNT_MAX = 64
PARALLEL_MAX = 32
MESSAGES_MAX = 32
"""The messages of one request to a queue."""
REQUESTS_MAX = 1000
"""The recorded requests of a service."""
DEFAULT_LOCATION = Path("data")


class Deprecated(Action):
    """A flag that sets the value of its successor, and says so on stderr."""

    def __init__(self, *, successor: str, **options: Any) -> None:
        """`options` are argparse's."""
        super().__init__(**options)
        self._successor = successor

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: object, option_string: str | None = None
    ) -> None:
        """See argparse."""
        print(f"{parser.prog}: {option_string} is deprecated, use {self._successor}", file=sys.stderr)
        setattr(namespace, self.dest, values)


class NoEffect(Action):
    """A flag of another emulator, which is accepted; a line on stderr says what is true here instead."""

    def __init__(self, *, instead: str, **options: Any) -> None:
        """`options` are argparse's."""
        super().__init__(**options)
        self._instead = instead

    def __call__(self, parser: ArgumentParser, _: Namespace, __: object, option_string: str | None = None) -> None:
        """See argparse."""
        print(f"{parser.prog}: {option_string} has no effect: {self._instead}", file=sys.stderr)


def host(text: str) -> str:
    """Return an address without the brackets of IPv6."""
    bare = text.removeprefix("[").removesuffix("]")
    if not bare or any(character.isspace() or character in "/;=" for character in bare):
        raise ArgumentTypeError(f"{text!r} is not an address")
    return bare


def port(text: str) -> int:
    """Return a port."""
    return number(text, 0, 65535, "a port (0 to 65535)")


def services(text: str) -> tuple[str, ...]:
    """Return the names of services, in the order in which they are listed for people."""
    named = {name.strip() for name in text.split(",")}
    if not named <= {*SERVICES}:
        raise ArgumentTypeError(f"{text!r} is not a list of services: {', '.join(SERVICES)}")
    return tuple(name for name in SERVICES if name in named)


def suffix(text: str) -> str:
    """Return a domain suffix, in lower case and without dots around it."""
    return _labels(text, "a domain suffix")


def host_name(text: str) -> str:
    """Return a host name, in lower case and without a dot at its end."""
    return _labels(text, "a host name without scheme and port")


def _labels(text: str, wanted: str) -> str:
    labels = text.strip(".").lower().split(".")
    known = all(label and label.isascii() and label.replace("-", "").replace("_", "").isalnum() for label in labels)
    # A name whose last label is a number is an IPv4 address.
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


def source_host(text: str) -> str | IPv4Network | IPv6Network:
    """Return a host name, `*.` and a domain for all names in it, an address or a network."""
    try:
        return network(text)
    except ArgumentTypeError:
        wildcard = "*." if text.startswith("*.") else ""
        return wildcard + _labels(text.removeprefix(wildcard), "a host name, an address or a network")


def no_pfx(_: str) -> NoReturn:
    """Reject `--pwd`, since PFX files are not supported."""
    raise ArgumentTypeError(
        "PFX files are not supported; convert the file to PEM: openssl pkcs12 -in FILE.pfx -nodes -out FILE.pem"
    )


def count(text: str) -> int:
    """Return an integer from 1 to `COUNT_MAX`."""
    return number(text, 1, COUNT_MAX, f"a number from 1 to {COUNT_MAX}")


def number(text: str, least: int, most: int, wanted: str) -> int:
    """Return an integer from `least` to `most`; `wanted` says that in a message."""
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise ArgumentTypeError(f"{text!r} is not {wanted}")
    return int(text)


def switch(text: str) -> bool:
    """Return whether a switch is on."""
    if text not in ("on", "off"):
        raise ArgumentTypeError(f"{text!r} is neither on nor off")
    return text == "on"


def retention_days(text: str) -> int:
    """Return a number of days, 0 to 365."""
    return number(text, 0, RETENTION_DAYS_MAX, f"a number of days (0 to {RETENTION_DAYS_MAX})")


def rehydrate_seconds(text: str) -> int:
    """Return a number of seconds, 0 to 30 days."""
    return number(text, 0, REHYDRATE_SECONDS_MAX, f"a number of seconds (0 to {REHYDRATE_SECONDS_MAX})")


def message_count(text: str) -> int:
    """Return a number of messages, 1 to 32."""
    return number(text, 1, MESSAGES_MAX, f"a number from 1 to {MESSAGES_MAX}")


def request_count(text: str) -> int:
    """Return a number of recorded requests, 1 to 1,000."""
    return number(text, 1, REQUESTS_MAX, f"a number from 1 to {REQUESTS_MAX:,}")


def parallel(text: str) -> int:
    """Return a number of requests at a time, 1 to 32."""
    return number(text, 1, PARALLEL_MAX, f"a number from 1 to {PARALLEL_MAX}")


def entity_count(text: str) -> int:
    """Return a number of entities from 1 on."""
    return number(text, 1, 10**9, "a number from 1 on")


def store(text: str) -> Path | DatabaseUrl:
    """Return a location or a database URL."""
    return database(text) if text.startswith(tuple(f"{scheme}:" for scheme in SCHEMES)) else Path(text)


def positive(number: type[int] | type[float]) -> Callable[[str], int | float]:
    """Return a parser of finite numbers above 0, of the type `number`."""

    def read(text: str) -> int | float:
        try:
            value = number(text)
        except ValueError:
            value = 0
        if not 0 < value < 1e9:
            raise ArgumentTypeError(f"{text!r} is not a number above 0")
        return value

    return read


def threshold(text: str) -> tuple[str, float]:
    """Return the name and the number of a threshold such as `hot-share=0.5`."""
    name, _, number = text.partition("=")
    return name, positive(float)(number)


_UNITS = {"m": 60, "h": 3600, "d": 86_400}
_DAYS_KEPT = 28
_DAYS_MAX = 36_500
_PICTURES = (".html", ".svg", ".png", ".json")


def duration(text: str) -> float:
    """Return a time such as `30m`, `6h` or `28d` in seconds: no longer than traffic and logs are kept."""
    return _seconds_of(text, _DAYS_KEPT)


def lifetime(text: str) -> float:
    """Return a time such as `30m`, `6h` or `365d` in seconds."""
    return _seconds_of(text, _DAYS_MAX)


def _seconds_of(text: str, days_max: int) -> int:
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isascii() and number.isdecimal():
        seconds = int(number[:9]) * _UNITS[unit]
        if 0 < seconds <= days_max * _UNITS["d"]:
            return seconds
    raise ArgumentTypeError(f"{text!r} is not a time such as 30m, 6h or 28d, at most {days_max} days")


def picture(text: str) -> Path:
    """Return the path of a picture, whose ending is its format."""
    path = Path(text)
    if path.suffix not in _PICTURES:
        raise ArgumentTypeError(f"{text!r} ends in none of {', '.join(_PICTURES)}")
    return path
