"""The URL of a database, taken apart so that its password never shows.

Invariant: no text from here, and no `repr`, shows a password, or any part of a URL that cannot be parsed: that part may
be one. So a URL that asyncpg would misunderstand is rejected here, before another module quotes it.
"""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

SCHEMES = ("postgresql", "postgres")

_EXPECTED = (
    "is no URL of PostgreSQL, postgresql:…; "
    "within its parts, characters such as @ : / ? # and % are spelled with %, as %40 for @"
)


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """A database's URL."""

    text: str
    """The URL without its password."""
    password: str | None = field(default=None, repr=False)


def read_url(text: str) -> DatabaseUrl:
    """Parse a URL.

    Raises:
        ValueError: it is malformed, or has an unexpected part. The text completes a sentence that begins with a name.
    """
    try:
        parts = urlsplit(text)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else []
    except ValueError:
        raise ValueError(_EXPECTED) from None
    user_info, at, hosts = parts.netloc.rpartition("@")
    user, _, password = user_info.partition(":")
    suspicious = "@" in user_info + parts.path + parts.query or parts.fragment or "%00" in text
    scheme = text.partition("://")[0]
    if scheme not in SCHEMES or suspicious or not all(map(_is_host, hosts.split(","))):
        raise ValueError(_EXPECTED)
    if any(name == "sslpassword" for name, _ in options):
        raise ValueError("cannot have sslpassword; let the key be a file that only its owner can read")
    passwords = [unquote(password), *(value for name, value in options if name == "password")]
    kept = [(name, value) for name, value in options if name != "password"]
    query = parts.query if kept == options else urlencode(kept, quote_via=quote)
    bare = f"{scheme}://{user}{at}{hosts}{parts.path}"
    return DatabaseUrl(f"{bare}?{query}" if query else bare, next(filter(None, passwords), None))


def _is_host(text: str) -> bool:
    """Return whether a text is empty or may be a host with an optional port."""
    if text.startswith("["):
        _, bracket, port = text.partition("]")
        return bool(bracket) and (not port or (port[0] == ":" and _is_port(port[1:])))
    _, colon, port = text.partition(":")
    return not colon or _is_port(port)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= 65535
