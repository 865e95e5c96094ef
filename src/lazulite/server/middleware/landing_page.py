"""`GET /` in a browser: a page that says what the server is, where an address alone would get an error in XML.

A browser sends `Accept: text/html`, which no client of the services does. A host that names an account has resources at
`/`, so it gets no page.
"""

from collections.abc import Callable

from lazulite.protocol.message import Request, Response

PATH = "/"
OPERATION = "LandingPage"
DOCUMENTATION = "docs/README.md"
"""In a checkout; no other place is known to a server."""
_HEADERS = [
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'"),
    ("X-Content-Type-Options", "nosniff"),
]


class LandingPage:
    """The page of one service.

    Args:
        service: such as `table`.
        names_account: returns whether a `Host` field names an account of the service.
    """

    def __init__(self, service: str, names_account: Callable[[str], bool]) -> None:
        self._names_account = names_account
        self._body = (
            "<!DOCTYPE html>\n<title>Lazulite</title>\n"
            f"<p>This is Lazulite, a server of Azure {service.title()} storage: "
            "programs reach it by a connection string, which <code>lazulite connection-string</code> prints.\n"
            f"<p>Its documentation begins with the file <code>{DOCUMENTATION}</code> of its source; "
            "<code>lazulite --help</code> lists its commands.\n"
        ).encode()

    def response(self, request: Request) -> Response | None:
        """Return the page to a browser that asks for `/`, and None to all other requests."""
        headers = request.headers
        if request.query or request.method not in ("GET", "HEAD") or "authorization" in headers:
            return None
        if "text/html" not in headers.get("accept", "") or self._names_account(headers.get("host", "")):
            return None
        request.record.operation = OPERATION
        return Response(200, list(_HEADERS), self._body)
