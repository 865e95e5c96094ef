"""Shared Key and Shared Key Lite (reference §13).

Invariants:
- signatures are compared in constant time;
- the path is signed as it came over the wire. Some HTTP stacks re-encode it after signing, so a failed comparison is
  tried again with a few other spellings, a fixed number of them. Credentials that were found good as they came are
  compared with no other spelling again.
"""

import hmac
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from lazulite.auth.accounts.account import Account, Signer
from lazulite.auth.grant import SHARED_KEY_GRANT, Grant
from lazulite.auth.sas import ticks_of
from lazulite.protocol.addressing import Address
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import DETAIL_CHARACTERS_MAX, ServiceError, authentication_failed
from lazulite.protocol.message import Request
from lazulite.protocol.secret_headers import CREDENTIAL_HEADERS
from lazulite.protocol.template import HeadValues, TextTemplate

REQUEST_AGE_SECONDS_MAX = 15 * 60
"""How far a request's date may be from the service's time, in either direction."""

Canonicalize = Callable[[str, Request, str, str, str | None], str]
"""(scheme, request, account name, path, comp) -> string-to-sign. Each service has its own."""

NormalizePath = Callable[[str], str]
"""Returns what a path below the account names, decoded, given the path percent-encoded."""

_SCHEMES = {"sharedkey": "SharedKey", "sharedkeylite": "SharedKeyLite"}
_RFC_1123 = re.compile(r"[A-Z][a-z]{2}, (\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)
_DATE_CHARACTERS_MAX = 29
_MONTH_NAMES = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTHS = {_MONTH_NAMES[3 * index : 3 * index + 3]: index + 1 for index in range(12)}
_PATH_SAFE = "/!$&'()*+,;=:@-._~"
"""What RFC 3986 lets stand in a path."""


_SECRET = re.compile(
    rf"^((?:sig|{'|'.join(sorted(CREDENTIAL_HEADERS))}):).*|([?&]sig=)[^&\s]*", re.MULTILINE | re.IGNORECASE
)
"""What of a string to sign authorizes other requests, behind its name."""


class Authorization(NamedTuple):
    """An Authorization header, taken apart."""

    scheme: str
    """`SharedKey` or `SharedKeyLite`."""
    account: str
    signature: str

    def __repr__(self) -> str:
        return f"Authorization({self.scheme}, {self.account})"


def parse_authorization(header: str) -> Authorization:
    """Take an Authorization header apart.

    Raises:
        ServiceError: `InvalidAuthenticationInfo`.
    """
    name, _, rest = header.partition(" ")
    scheme = _SCHEMES.get(name.lower())
    rest = rest.lstrip(" ")
    account, _, signature = rest.partition(":")
    if scheme is None or not account or not signature or rest.split() != [rest]:
        raise ServiceError("InvalidAuthenticationInfo")
    return Authorization(scheme, account, signature)


def request_date(request: Request) -> str:
    """Return the header that dates the request: `x-ms-date`, else `Date`, else ""."""
    return request.headers.get("x-ms-date") or request.headers.get("date", "")


def parse_http_date(text: str) -> int:
    """Return an RFC 1123 date (`Mon, 27 Jun 2016 15:25:14 GMT`) in ticks.

    Raises:
        ValueError: any other form.
    """
    if len(text) > _DATE_CHARACTERS_MAX:
        raise ValueError("not an RFC 1123 date")
    return _parse_short_date(text)


@lru_cache(maxsize=256)
def _parse_short_date(text: str) -> int:
    """Parse; cached, because the requests of one second share their date."""
    match = _RFC_1123.fullmatch(text)
    if match is None or match[2] not in _MONTHS:
        raise ValueError("not an RFC 1123 date")
    day = date(int(match[3]), _MONTHS[match[2]], int(match[1]))
    return ticks_of(day, int(match[4]), int(match[5]), int(match[6]))


def check_date(request: Request, now: int, window_seconds: int = REQUEST_AGE_SECONDS_MAX) -> None:
    """Reject a request whose date is missing, malformed or too far away.

    Raises:
        ServiceError: `AuthenticationFailed`. *Unverified*: its detail for a date that is missing or malformed.
    """
    text = request_date(request)
    try:
        distance = abs(now - parse_http_date(text))
    except ValueError:
        raise authentication_failed(f"Request date header not specified or malformed: '{text}'") from None
    if distance > window_seconds * TICKS_PER_SECOND:
        raise authentication_failed(f"Request date header too old: '{text}'")


class SharedKey:
    """The credentials of a request that one of an account's keys signed. Implements `VerifiedCredentials`.

    Args:
        account: has the keys.
        header: the Authorization header.
        address: where the request goes.
        comp: value of the query parameter.
        canonicalize: the service's string-to-sign.
        normalize_path: see `ServiceCredentials`.
        window_seconds: how far the date of a request may be off.

    Raises:
        ServiceError: the header is malformed, or names another account.
    """

    __slots__ = (
        "_account",
        "_address",
        "_canonicalize",
        "_comp",
        "_normalize_path",
        "_scheme",
        "_start",
        "_window",
        "lasts",
    )

    def __init__(
        self,
        account: Account,
        header: str,
        address: Address,
        comp: str | None,
        canonicalize: Canonicalize,
        normalize_path: NormalizePath | None = None,
        window_seconds: int = REQUEST_AGE_SECONDS_MAX,
    ) -> None:
        authorization = parse_authorization(header)
        if authorization.account != account.name:
            raise ServiceError("AuthenticationFailed")
        self._account = account
        self._address = address
        self._comp = comp
        self._canonicalize = canonicalize
        self._normalize_path = normalize_path
        self._scheme = authorization.scheme
        self._start = header.removesuffix(authorization.signature)
        self._window = window_seconds
        self.lasts = False
        """Whether a request was signed as it came, so that further requests can be checked by the same means."""

    @property
    def grant(self) -> Grant:
        """What an account's key permits: everything."""
        return SHARED_KEY_GRANT

    def check(self, request: Request, now: int) -> None:
        """Reject a request that neither of the account's keys signed, or whose date is too far from `now`, in ticks.

        Raises:
            ServiceError: `AuthenticationFailed`, or as `ServiceCredentials.normalize_path`.
        """
        header = request.headers.get("authorization", "")
        if not header.startswith(self._start):
            raise ServiceError("AuthenticationFailed")
        check_date(request, now, self._window)
        signature = header[len(self._start) :]
        claimed = signature.encode("latin-1", "replace")
        if self._signs(request, request.path, claimed):
            self.lasts = True
            return
        if self.lasts or not any(self._signs(request, path, claimed) for path in self._spellings(request.path)):
            text = self._canonicalize(self._scheme, request, self._account.name, request.path, self._comp)
            raise authentication_failed(
                f"The MAC signature found in the HTTP request '{signature}' is not the same as any computed "
                f"signature. Server used following string to sign: '{shown_string(text)}'."
            )

    def repeated(self, marked: Request, names: Sequence[str]) -> "RepeatedSharedKey | None":
        """See `VerifiedCredentials`: the date and the signature are looked at each time."""
        dated = "x-ms-date" if "x-ms-date" in marked.headers else "date"
        if not self.lasts or dated not in names or "authorization" not in names:
            return None
        text = self._canonicalize(self._scheme, marked, self._account.name, marked.path, self._comp)
        return RepeatedSharedKey(
            self._account.signers,
            self._start.encode("latin-1"),
            self._window * TICKS_PER_SECOND,
            TextTemplate(text),
            names.index(dated),
            names.index("authorization"),
            names.index("content-length") if "content-length" in names else None,
        )

    def _signs(self, request: Request, path: str, claimed: bytes) -> bool:
        """Return whether a key has signed a request with a path, given the signature."""
        text = self._canonicalize(self._scheme, request, self._account.name, path, self._comp)
        try:
            # Paths and headers are the wire's bytes one by one, and those are what a client signs.
            message = text.encode("latin-1")
        except UnicodeEncodeError:
            return False
        for signer in self._account.signers:  # noqa: SIM110 - a generator would cost each request one frame more
            if hmac.compare_digest(signer.sign(message), claimed):
                return True
        return False

    def _spellings(self, path: str) -> Iterator[str]:
        """Yield what a client may have signed before its stack re-encoded the path: at most 14."""
        address, normalize_path = self._address, self._normalize_path
        seen = {path}
        decoded = unquote_to_bytes(path.encode("latin-1", "replace"))
        variants = [
            path,
            quote(decoded, safe=_PATH_SAFE),
            path.replace("%27", "'"),
            path.replace("'", "%27"),
        ]
        if normalize_path is not None:
            variants.append(
                path.removesuffix(address.resource) + quote(normalize_path(address.resource), safe=_PATH_SAFE)
            )
        if address.secondary:
            # The documentation signs the primary's path; the JavaScript and .NET SDKs sign the one that they send.
            marked, plain = f"/{address.account}-secondary", f"/{address.account}"
            sent = [text.removeprefix(marked) for text in variants if text.startswith(marked)]
            # The Python SDK sends `/acct-secondary/acct/…` for a path-style endpoint and signs `/acct/…`.
            variants += [plain + text for text in sent] + [text for text in sent if text.startswith(f"{plain}/")]
        for text in variants:
            if text not in seen:
                seen.add(text)
                yield text


class RepeatedSharedKey(NamedTuple):
    """The signatures of requests that differ in values alone. Implements `RepeatedCredentials`."""

    signers: Sequence[Signer]
    start: bytes
    """What the Authorization header begins with."""
    window: int
    """How far a date may be off, in ticks."""
    text: TextTemplate
    """The string-to-sign."""
    date_at: int
    """The index of the date among the values."""
    header_at: int
    """The index of the Authorization header."""
    length_at: int | None
    """The index of Content-Length, which some services sign as nothing if it is 0."""

    @property
    def checked(self) -> Sequence[int]:
        """See `RepeatedCredentials`: the date, which has one form."""
        return (self.date_at,)

    def accept(self, values: HeadValues, now: int) -> bool:
        """See `RepeatedCredentials`."""
        signers, start, window, text, date_at, header_at, length_at = self
        header = values[header_at]
        if not header.startswith(start) or (length_at is not None and values[length_at] == b"0"):
            return False
        try:
            date = parse_http_date(values[date_at].decode("ascii"))
        except ValueError:
            return False
        if not -window <= now - date <= window:
            return False
        message, claimed = text.of(values), header[len(start) :]
        if message is None:
            return False
        for signer in signers:  # noqa: SIM110 - a generator would cost each request one frame more
            if hmac.compare_digest(signer.sign(message), claimed):
                return True
        return False


def shown_string(string_to_sign: str) -> str:
    """Return a string to sign as a rejection shows it to the sender of its request.

    Everything in it came with the request. What authorizes another request is left out, as clients write rejections
    into logs: keys of customers, the credentials of a copy's source, a SAS beside the header.
    """
    text = string_to_sign[:DETAIL_CHARACTERS_MAX].encode("latin-1", "replace").decode("utf-8", "replace")
    return _SECRET.sub(lambda match: f"{match[1] or match[2]}REDACTED", text)
