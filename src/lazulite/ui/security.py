"""What protects the pages from other origins: hosts, origins, and the headers of responses.

A page of another site, or a name that it leads to this machine, must neither read a page nor send a form. Browsers tell
where a request comes from by `Host`, `Origin` and `Sec-Fetch-Site`. Another port of the same machine counts as another
origin, although its requests carry the cookie.
"""

import hmac
from collections.abc import Iterable, Mapping

CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

HEADERS = (
    ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
"""The fields of every response, but those that it has itself."""

LOCAL_NAMES = ("127.0.0.1", "::1", "localhost")


class KnownHosts:
    """The values of `Host` that are answered.

    Args:
        names: names and addresses beside those of loopback, without ports.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset((*LOCAL_NAMES, *(name.lower() for name in names)))

    def __contains__(self, host: str) -> bool:
        """Return whether a `Host` field names this server."""
        name, _, port = host.rpartition("]") if host.startswith("[") else host.partition(":")
        if host.startswith("["):
            name, port = name[1:], port.removeprefix(":")
        return name.lower() in self._names and (not port or (port.isascii() and port.isdigit()))


def is_same_origin(scheme: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request that changes something comes from a page of this origin.

    A request that tells neither where it comes from nor its origin does not. The origin of a form is `null`, as the
    pages let no browser say where it has been.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    own = f"{scheme}://{headers.get('host', '')}"
    return origin == own if site is None else site == "same-origin" and origin in (None, "null", own)


def is_embedded_elsewhere(headers: Mapping[str, str]) -> bool:
    """Return whether another origin loads a page as a part of its own, such as a script or an image."""
    elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    return elsewhere and headers.get("sec-fetch-mode") != "navigate"


def is_token(expected: str, given: str) -> bool:
    """Return whether a token is the expected one, in constant time."""
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "surrogatepass"))
