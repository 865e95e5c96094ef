"""Shared Key and Shared Key Lite (reference §13).

Invariants:
- signatures are compared in constant time;
- the path is signed as it came over the wire. Some HTTP stacks re-encode it after signing, so a failed comparison is
  tried again with a few other spellings, a fixed number of them.
"""

import hmac
import re
from collections.abc import Callable, Iterator
from datetime import date
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from lazulite.auth.accounts.account import Account
from lazulite.auth.sas.dates import ticks_of
from lazulite.protocol.addressing import Address
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import DETAIL_CHARACTERS_MAX, ServiceError, authentication_failed
from lazulite.protocol.message import Request

REQUEST_AGE_SECONDS_MAX = 15 * 60
"""How far a request's date may be from the service's time, in either direction."""

Canonicalize = Callable[[str, Request, str, str, str | None], str]
"""(scheme, request, account name, path, comp) -> string-to-sign. Each service has its own."""

Respell = Callable[[str], str]
"""Returns what a path below the account names, decoded, given the path percent-encoded."""

_SCHEMES = {"sharedkey": "SharedKey", "sharedkeylite": "SharedKeyLite"}
_RFC_1123 = re.compile(r"[A-Z][a-z]{2}, (\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)
_DATE_CHARACTERS_MAX = 29
_MONTH_NAMES = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTHS = {_MONTH_NAMES[3 * index : 3 * index + 3]: index + 1 for index in range(12)}
_PATH_SAFE = "/!$&'()*+,;=:@-._~"
"""What RFC 3986 lets stand in a path."""


_SECRET = re.compile(
    r"^((?:sig|x-ms-(?:source-)?encryption-key|x-ms-copy-source-authorization):).*|([?&]sig=)[^&\s]*",
    re.MULTILINE | re.IGNORECASE,
)
"""What of a string to sign authorizes other requests, behind its name."""


class Credentials(NamedTuple):
    """An Authorization header, taken apart."""

    scheme: str
    """`SharedKey` or `SharedKeyLite`."""
    account: str
    signature: str

    def __repr__(self) -> str:
        return f"Credentials({self.scheme}, {self.account})"


def parse_authorization(header: str) -> Credentials:
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
    return Credentials(scheme, account, signature)


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


def is_current(request: Request, now: int, window_seconds: int) -> bool:
    """Return whether a request has a date, and one within the window around `now`, in ticks."""
    try:
        return abs(now - parse_http_date(request_date(request))) <= window_seconds * TICKS_PER_SECOND
    except ValueError:
        return False


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


def check_signature(
    request: Request,
    address: Address,
    account: Account,
    comp: str | None,
    credentials: Credentials,
    canonicalize: Canonicalize,
    respell: Respell | None = None,
) -> None:
    """Reject a request that neither of the account's keys signed.

    Args:
        request: for its method, path and headers.
        address: where it goes.
        account: whose keys count.
        comp: value of the query parameter.
        credentials: of its Authorization header.
        canonicalize: the service's string-to-sign.
        respell: see `ServiceCredentials`.

    Raises:
        ServiceError: `AuthenticationFailed`, or as `respell`.
    """
    claimed = credentials.signature.encode("latin-1", "replace")
    for path in _spellings(request.path, address, respell):
        text = canonicalize(credentials.scheme, request, account.name, path, comp)
        try:
            # Paths and headers are the wire's bytes one by one, and those are what a client signs.
            message = text.encode("latin-1")
        except UnicodeEncodeError:
            continue
        for signer in account.signers:
            if hmac.compare_digest(signer.sign(message), claimed):
                return
    text = canonicalize(credentials.scheme, request, account.name, request.path, comp)
    raise authentication_failed(
        f"The MAC signature found in the HTTP request '{credentials.signature}' is not the same as any computed "
        f"signature. Server used following string to sign: '{_shown(text)}'."
    )


def _shown(string_to_sign: str) -> str:
    """Return a string to sign as a rejection shows it to the sender of its request.

    Everything in it came with the request. What authorizes another request is left out, as clients write rejections
    into logs: keys of customers, the credentials of a copy's source, a SAS beside the header.
    """
    text = string_to_sign[:DETAIL_CHARACTERS_MAX].encode("latin-1", "replace").decode("utf-8", "replace")
    return _SECRET.sub(lambda match: f"{match[1] or match[2]}REDACTED", text)


def _spellings(path: str, address: Address, respell: Respell | None) -> Iterator[str]:
    """Yield the path as it came, then what a client may have signed before its stack re-encoded it: at most 15."""
    yield path
    seen = {path}
    decoded = unquote_to_bytes(path.encode("latin-1", "replace"))
    variants = [
        path,
        quote(decoded, safe=_PATH_SAFE),
        path.replace("%27", "'"),
        path.replace("'", "%27"),
    ]
    if respell is not None:
        variants.append(path.removesuffix(address.resource) + quote(respell(address.resource), safe=_PATH_SAFE))
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
