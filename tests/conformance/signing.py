"""An endpoint, and the Shared Key family that signs requests to it (reference §1, §13.1).

Invariant: a path is signed exactly as it is sent.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Endpoint(NamedTuple):
    """The endpoint and the account. `prefix` is `/account` in path style, empty in host style."""

    scheme: str
    host: str
    prefix: str
    account: str
    key: str

    @classmethod
    def parse(cls, url: str, account: str, key: str) -> "Endpoint":
        """Read an endpoint URL such as `http://127.0.0.1:10002/devstoreaccount1`."""
        parts = urlsplit(url)
        return cls(parts.scheme, parts.netloc, parts.path.rstrip("/"), account, key)

    @property
    def base(self) -> str:
        """The base of every absolute URL in an answer, with its final slash (reference §1)."""
        return f"{self.scheme}://{self.host}{self.prefix}/"

    @property
    def is_path_style(self) -> bool:
        """Whether the account stands in the path, as with an emulator."""
        return self.prefix != ""

    @property
    def secondary(self) -> "Endpoint":
        """The same account's secondary endpoint."""
        if self.is_path_style:
            return self._replace(prefix=f"{self.prefix}-secondary")
        first, _, rest = self.host.partition(".")
        return self._replace(host=f"{first}-secondary.{rest}")


class Unsigned(NamedTuple):
    """A request as a signer sees it."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]


_STANDARD = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)

Signer = Callable[[Endpoint, Unsigned], str | None]
"""Makes the Authorization header, or None for a request without one."""


def anonymous(_endpoint: Endpoint, _request: Unsigned) -> None:
    """No Authorization header."""


def shared_key(endpoint: Endpoint, request: Unsigned) -> str:
    """Reference §13.1."""
    headers = request.headers
    lines = [request.method, headers.get("content-md5", ""), headers.get("content-type", ""), _date(headers)]
    return _sign("SharedKey", endpoint, [*lines, canonical_resource(endpoint, request)])


def shared_key_lite(endpoint: Endpoint, request: Unsigned) -> str:
    """Reference §13.1."""
    return _sign("SharedKeyLite", endpoint, [_date(request.headers), canonical_resource(endpoint, request)])


def full_shared_key(endpoint: Endpoint, request: Unsigned) -> str:
    """Sign a request to the Blob or Queue service: all its headers that count, and its query."""
    headers = {**request.headers, "date": ""}
    if headers.get("content-length") == "0" and headers["x-ms-version"] >= "2015-02-21":
        headers["content-length"] = ""
    lines = [request.method, *(headers.get(name, "") for name in _STANDARD), *_extensions(headers)]
    parameters = sorted((name.lower(), value) for name, value in parse_qsl(request.query, keep_blank_values=True))
    lines += [f"/{endpoint.account}{request.path}", *(f"{name}:{value}" for name, value in parameters)]
    return _sign("SharedKey", endpoint, lines)


def full_shared_key_lite(endpoint: Endpoint, request: Unsigned) -> str:
    """Sign a request to the Blob or Queue service: fewer headers, and nothing of the query but `comp`."""
    headers = request.headers
    lines = [request.method, headers.get("content-md5", ""), headers.get("content-type", ""), "", *_extensions(headers)]
    return _sign("SharedKeyLite", endpoint, [*lines, canonical_resource(endpoint, request)])


def canonical_resource(endpoint: Endpoint, request: Unsigned) -> str:
    """`/account` + path as sent + `?comp=…` (nothing else of the query)."""
    comp = [value for name, value in parse_qsl(request.query) if name == "comp"]
    return f"/{endpoint.account}{request.path}" + (f"?comp={comp[0]}" if comp else "")


def _date(headers: Mapping[str, str]) -> str:
    return headers.get("x-ms-date") or headers.get("date", "")


def _extensions(headers: Mapping[str, str]) -> list[str]:
    return [f"{name}:{value}" for name, value in sorted(headers.items()) if name.startswith("x-ms-")]


def _sign(scheme: str, endpoint: Endpoint, lines: list[str]) -> str:
    return f"{scheme} {endpoint.account}:{signature(endpoint.key, chr(10).join(lines))}"


def signature(key: str, text: str) -> str:
    """Base64 of the HMAC-SHA256 of a text under a base64 key."""
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()
