"""The rules for a request's head that go beyond its syntax, which llhttp checks.

Invariants: where a body ends is never a matter of opinion (RFC 9112 section 6.3), so whatever two parsers could read
in two ways is rejected and the connection closed. `Request.path` and `.query` are the characters of the wire.

What llhttp 9 rejects by itself in strict mode, and tests hold it to: bare LF or CR, obs-fold, whitespace before the
colon, control characters, Content-Length that repeats, is empty, signed or not decimal, Content-Length together with
Transfer-Encoding, and codings after `chunked`.
"""

import re
from collections.abc import Mapping

from lazulite.protocol.errors import ServiceError, missing_length, unsupported_verb
from lazulite.protocol.message import Request
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.limits import Limits

METHODS: Mapping[str, None] = dict.fromkeys(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "MERGE"))
"""What a service is asked; every other method is rejected here."""

_BODY_EXPECTED = frozenset({"POST", "PUT", "PATCH", "MERGE"})
_BODILESS = METHODS.keys() - _BODY_EXPECTED
"""Methods of requests that have a body only if they say so."""

SINGLE_FIELDS = {
    "authorization": "InvalidAuthenticationInfo",
    "content-length": "InvalidHeaderValue",
    "content-type": "InvalidHeaderValue",
    "expect": "InvalidHeaderValue",
    "host": "HostInformationNotPresent",
    "transfer-encoding": "InvalidHeaderValue",
    "x-ms-date": "InvalidHeaderValue",
    "x-ms-version": "InvalidHeaderValue",
}
"""Fields that may come only once, and the code that rejects a repetition. Other fields are joined (RFC 9110, 5.3)."""

_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+;=%-]+)(?::[0-9]*)?")
"""RFC 9110 section 7.2: uri-host [":" port]."""

_hosts: set[str | None] = set()
"""Values that were found good: clients repeat theirs on each request."""
_HOSTS_MAX = 1024
_CACHED_LENGTH_MAX = 256

_ABSOLUTE = re.compile(r"(?i:https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?")
"""RFC 9112 section 3.2.2, absolute-form."""


class HeadError(Exception):
    """A head after which the connection cannot go on; `error` is what to answer."""

    def __init__(self, error: ServiceError) -> None:
        super().__init__(error.code)
        self.error = error


def read_head(incoming: PendingRequest, target: str, version: str, limits: Limits) -> None:
    """Complete `incoming`, which knows method and headers, by its target and framing.

    Sets `incoming.error` for what can be answered with the connection left usable.

    Raises:
        HeadError: the connection has to end with the rejection.
    """
    request = incoming.request
    headers, method = request.headers, request.method
    if version != "1.1":
        if version != "1.0":
            raise HeadError(ServiceError("InvalidInput", status=505))
        incoming.http_1_0 = True
    if method == "CONNECT":
        raise HeadError(unsupported_verb(METHODS))
    host = headers.get("host")
    if host not in _hosts:
        _check_host(host, optional=incoming.http_1_0)
    if target[:1] == "/" and "#" not in target:
        request.path, _, request.query = target.partition("?")
    else:
        request.headers = _other_form(request, target)
    if not host and host is not None and not request.headers["host"]:
        raise HeadError(ServiceError("HostInformationNotPresent"))
    if method in _BODILESS and "content-length" not in headers and "transfer-encoding" not in headers:
        return
    _read_framing(incoming, headers)
    if method not in METHODS:
        incoming.reject(unsupported_verb(METHODS), close=False)
    if incoming.length != 0:
        _check_body(incoming, headers, limits)


def _other_form(request: Request, target: str) -> Mapping[str, str]:
    """Read any target but a good origin-form one; return the headers, with the target's authority as Host.

    The target's scheme is not believed: `https` in it does not encrypt a connection, and SAS may ask for that.
    """
    if target == "*" and request.method == "OPTIONS":
        request.path = "*"
        return request.headers
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        raise HeadError(ServiceError("RequestUrlFailedToParse"))
    authority, path, query = absolute.groups()
    if not is_host(authority):
        raise HeadError(ServiceError("InvalidHeaderValue"))
    request.path = path or ("*" if request.method == "OPTIONS" and query is None else "/")
    request.query = query or ""
    return {**request.headers, "host": authority}


def is_host(text: str) -> bool:
    """Whether a text may stand in a Host header."""
    return _HOST.fullmatch(text) is not None


def is_known_host(text: str | None) -> bool:
    """Whether a Host header came before and was found good."""
    return text is not None and text in _hosts


def _check_host(host: str | None, *, optional: bool) -> None:
    """Reject what cannot stand in a Host header; none at all if it is not optional. An empty one is no host yet."""
    if host is None:
        if not optional:
            raise HeadError(ServiceError("HostInformationNotPresent"))
    elif host:
        if not is_host(host):
            raise HeadError(ServiceError("InvalidHeaderValue"))
        if len(host) <= _CACHED_LENGTH_MAX:
            if len(_hosts) >= _HOSTS_MAX:
                _hosts.clear()
            _hosts.add(host)


def _read_framing(incoming: PendingRequest, headers: Mapping[str, str]) -> None:
    coding = headers.get("transfer-encoding")
    length = headers.get("content-length")
    if coding is not None:
        if incoming.http_1_0 or length is not None:
            raise HeadError(ServiceError("InvalidHeaderValue"))
        if coding.lower() != "chunked":
            raise HeadError(ServiceError("NotImplemented"))
        incoming.length = None
    elif length is not None:
        incoming.length = int(length)
    elif incoming.request.method in _BODY_EXPECTED:
        # The sender may believe that its body ends with the connection, so nothing after the head can be a request.
        raise HeadError(missing_length())


def _check_body(incoming: PendingRequest, headers: Mapping[str, str], limits: Limits) -> None:
    expect = headers.get("expect")
    expects = expect is not None and not incoming.http_1_0
    if expects and expect is not None and expect.lower() != "100-continue":
        raise HeadError(ServiceError("InvalidHeaderValue", status=417))
    # A sender that waits for 100 may or may not send the body after a rejection: only closing is clear to both.
    if incoming.error is not None and (expects or (incoming.length or 0) > limits.discarded_bytes):
        raise HeadError(incoming.error)
    incoming.expects_continue = expects
