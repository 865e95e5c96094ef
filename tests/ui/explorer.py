"""A signed-in client of the explorer of a server in this process, without a browser."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from lazulite.app.commands import OPEN_UI, OpenUiArguments
from lazulite.testing import Storage

SECONDS_MAX = 60


class Seen(NamedTuple):
    """A response of the explorer."""

    status: int
    headers: Mapping[str, str]
    text: str

    def json(self) -> Any:
        """The document of a page's twin."""
        return json.loads(self.text)

    @property
    def location(self) -> str:
        """Where a redirect leads."""
        return self.headers["location"]


class Client:
    """A browser without scripts. Tests of other origins pass their own headers."""

    def __init__(self, link: str) -> None:
        url = urlsplit(link)
        self.host = url.netloc
        self.origin = f"{url.scheme}://{url.netloc}"
        self.cookie = ""
        found = self.send("GET", f"/?{url.query}")
        assert found.status == 303, found
        self.cookie = found.headers["set-cookie"].partition(";")[0]
        (self.csrf,) = re.findall(r'name="csrf" content="(\w+)"', self.get("/sessions").text)

    def send(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Seen:
        """Send a request with the cookie of the session."""
        status, found, content = self._exchange(method, path, headers, body)
        return Seen(status, found, content.decode())

    def send_bytes(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
        """Send a request, and return what comes back as a file."""
        status, _, content = self._exchange(method, path, headers, body)
        assert status == 200
        return content

    def _exchange(
        self, method: str, path: str, headers: Mapping[str, str] | None, body: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        connection = HTTPConnection(self.host, timeout=SECONDS_MAX)
        with closing(connection):
            own = {"Cookie": self.cookie} if self.cookie else {}
            connection.request(method, path, body or None, {**own, **(headers or {})})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read()

    def get(self, path: str) -> Seen:
        """Return a page."""
        return self.send("GET", path)

    def json(self, path: str) -> Any:
        """Return the document of a page's twin, given the path of the page with its query."""
        path, _, query = path.partition("?")
        found = self.get(f"{path}.json?{query}")
        assert found.status == 200, found
        return found.json()

    def post(self, path: str, fields: Mapping[str, str] | None = None, *, csrf: str | None = None) -> Seen:
        """Send a form of this origin; without `csrf`, with the token of the session."""
        form = {"csrf": self.csrf if csrf is None else csrf, **(fields or {})}
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.origin}
        return self.send("POST", path, headers, urlencode(form).encode())


@contextmanager
def explorer(storage: Storage) -> Iterator[str]:
    """Open the explorer of a server inside the block, and yield a link that signs in once."""
    with closing(storage.control.stream(OPEN_UI, OpenUiArguments())) as items:
        opened: Any = next(items)
        assert opened["started"]
        yield opened["url"]


def another_link(storage: Storage) -> str:
    """Return another link to the open explorer."""
    opened: Any = storage.control.ask(OPEN_UI, OpenUiArguments())
    assert not opened["started"]
    return str(opened["url"])


def ended(client: Client, redirect: Seen) -> Any:
    """Wait for the job that a redirect leads to, and return it."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        found = client.json(redirect.location)
        if found["has_ended"]:
            return found["job"]
        time.sleep(0.01)
    raise AssertionError("the job does not end")
