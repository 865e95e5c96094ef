"""Shared access signatures (SAS): the account SAS, the service SAS, and the cache of verified ones (reference §14).

Invariants:
- a token's values enter its string-to-sign exactly as they stand in the query, URL-decoded, never re-spelled;
- no value may hold a line feed. The string-to-sign joins values by line feeds, so such a value would make
  it ambiguous: other values would have the same signature;
- an empty value means the same as an absent one, for both sign the same;
- the cache is bounded. An entry counts only for the very account object that verified it, so a rotated key ends it.
  What may change between two requests (time, address, stored policy) is not cached.

A service derives its own SAS from `ServiceSas`: the values that it signs, and the scope that it grants. Dates are
ISO 8601 as the REST reference narrows it: `YYYY-MM-DD`, `YYYY-MM-DDThh:mm`, `…:ss` and `…:ss.f` with 1 to 7 digits,
each time followed by `Z` or `±hh:mm`.
"""

import hmac
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple
from urllib.parse import quote

from lazulite.auth.accounts.account import Account, Signer
from lazulite.auth.grant import Grant, Scope
from lazulite.protocol.clock import TICKS_PER_SECOND, format_http_date
from lazulite.protocol.errors import ServiceError, authentication_failed
from lazulite.protocol.lru_cache import LruCache
from lazulite.protocol.message import Request
from lazulite.protocol.template import HeadValues
from lazulite.protocol.version import (
    ACCOUNT_SAS_SINCE,
    ENCRYPTION_SCOPE_SINCE,
    REJECTIONS_NAMED_SINCE,
    SAS_SERVICE_PREFIX_SINCE,
    SAS_SINCE,
    SAS_TRANSPORT_SINCE,
    is_version,
)
from lazulite.records.catalog import StoredAccessPolicy

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,7}))?)?(?:Z|([+-])(\d\d):(\d\d)))?", re.ASCII
)
_EPOCH_DAY = date(1601, 1, 1).toordinal()


def ticks_of(day: date, hour: int, minute: int, second: int) -> int:
    """Return a UTC date and time as ticks.

    Raises:
        ValueError: a time that no day has.
    """
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("no such time of day")
    return (((day.toordinal() - _EPOCH_DAY) * 24 + hour) * 3600 + minute * 60 + second) * TICKS_PER_SECOND


def parse_sas_date(text: str) -> int:
    """Return the instant in ticks; a date alone is its midnight, UTC.

    Raises:
        ValueError: any other form.
    """
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError("not a date of the form YYYY-MM-DD or YYYY-MM-DDThh:mm[:ss[.fffffff]]Z")
    year, month, day, hour, minute, second, fraction, sign, off_hour, off_minute = match.groups("0")
    ticks = ticks_of(date(int(year), int(month), int(day)), int(hour), int(minute), int(second))
    ticks += int(fraction.ljust(7, "0"))
    if sign == "0":
        return ticks
    offset = (int(off_hour) * 60 + int(off_minute)) * 60 * TICKS_PER_SECOND
    return ticks - offset if sign == "+" else ticks + offset


def format_sas_date(ticks: int) -> str:
    """Return the instant, cut to whole seconds, as `YYYY-MM-DDThh:mm:ssZ`."""
    days, seconds = divmod(ticks // TICKS_PER_SECOND, 86_400)
    minutes, second = divmod(seconds, 60)
    return f"{date.fromordinal(days + _EPOCH_DAY)}T{minutes // 60:02}:{minutes % 60:02}:{second:02}Z"


SIGNED_VERSION = "2019-02-02"
"""The version that Lazulite signs tokens with; what the SDKs use by default."""

ACCOUNT_SAS_PARAMETERS = ("sig", "sv", "sp", "st", "se", "sip", "spr", "ss", "srt", "ses")
"""Every query parameter that takes part in an account SAS."""

_FIRST_TICK = ticks_of(date.min, 0, 0, 0)
_PROTOCOLS = {"": False, "https": True, "https,http": False, "http,https": False}
"""`spr` -> whether it demands https."""


class MalformedSasError(ValueError):
    """The values do not make a valid token. The text says which, and holds no signature."""


class AddressRange(NamedTuple):
    """IPv4 addresses from `first` to `last`, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Terms:
    """When, from where and how a token may be used: `st`, `se`, `sip` and `spr`, understood."""

    start: int | None
    expiry: int | None
    addresses: AddressRange | None
    https_only: bool

    def is_current(self, now: int) -> bool:
        """Return whether a time, in ticks, is between start and expiry (both included)."""
        return self.expiry is not None and now <= self.expiry and (self.start is None or now >= self.start)

    def check_time(self, now: int, frame: str = "time frame") -> None:
        """Reject with `AuthenticationFailed` outside of start to expiry (both included).

        Args:
            now: the time, in ticks.
            frame: what the rejection calls start to expiry.
        """
        if self.is_current(now):
            return
        if self.start is None:
            raise authentication_failed(
                f"Signed expiry time [{_shown(self.expiry)}] must be after signed start time [{_shown(now)}]"
            )
        raise authentication_failed(
            f"Signature not valid in the specified {frame}: Start [{_shown(self.start)}] - "
            f"Expiry [{_shown(self.expiry)}] - Current [{_shown(now)}]"
        )

    def check_transport(self, scheme: str, client: str) -> None:
        """Reject a request that came by http against `spr`, or from an address outside of `sip`.

        Args:
            scheme: `http` or `https`.
            client: the client's IP address; an IPv4 address mapped into IPv6 counts as itself.
        """
        if self.https_only and scheme != "https":
            raise ServiceError("AuthorizationProtocolMismatch")
        if self.addresses is not None:
            number, shown = _client_address(client)
            if not self.addresses.first <= number <= self.addresses.last:
                raise ServiceError(
                    "AuthorizationSourceIPMismatch",
                    f"This request is not authorized to perform this operation using this source IP {shown}.",
                )


def parse_terms(start: str, expiry: str, ip: str, protocol: str) -> Terms:
    """Understand the values of `st`, `se`, `sip` and `spr` ("" = absent).

    Raises:
        MalformedSasError: a value has no documented form.
    """
    if protocol not in _PROTOCOLS:
        raise MalformedSasError("spr must be https or https,http")
    return Terms(_parse_date("st", start), _parse_date("se", expiry), _parse_addresses(ip), _PROTOCOLS[protocol])


def check_version(version: str, first: str = SAS_SINCE) -> None:
    """Accept any well-formed version from `first` on, known or yet to come.

    Raises:
        MalformedSasError: otherwise.
    """
    if not is_version(version) or version < first:
        raise MalformedSasError(f"sv must be a version of the form YYYY-MM-DD, {first} or later")


def read_values(parameters: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a token's fields, field name -> value.

    Args:
        parameters: a request's query parameters.
        names: parameter -> field name.

    Raises:
        MalformedSasError: a value holds a line feed.
    """
    values = {field: parameters[name] for name, field in names.items() if name in parameters}
    if any("\n" in value for value in values.values()):
        raise MalformedSasError("a value holds a line feed")
    return values


def write_query(values: Mapping[str, str]) -> str:
    """Return a query string of the values that are there."""
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in values.items() if value)


def signature_mismatch(string_to_sign: str) -> ServiceError:
    """Return the rejection of a token that no key has signed. All of the string comes from the request."""
    return authentication_failed(f"Signature did not match. String to sign used was {string_to_sign}")


def malformed(error: MalformedSasError) -> ServiceError:
    """Return the rejection of a token of the wrong form. *Unverified*: the words of its detail."""
    return authentication_failed(f"The shared access signature is malformed: {error}")


def signature(signer: Signer, string_to_sign: str) -> str:
    """Return the base64 HMAC-SHA256."""
    return signer.sign(string_to_sign.encode()).decode()


def is_signed(account: Account, string_to_sign: str, given: str) -> bool:
    """Whether `given` is the signature by one of the account's keys. Takes the same time for any wrong one."""
    claimed = given.encode()
    matches = [hmac.compare_digest(signature(signer, string_to_sign).encode(), claimed) for signer in account.signers]
    return any(matches)


def _shown(ticks: int | None) -> str:
    """Return an instant as a rejection shows it; "" for none. An offset can carry it out of the calendar."""
    return "" if ticks is None else format_http_date(max(ticks, _FIRST_TICK))


def _parse_date(name: str, text: str) -> int | None:
    if not text:
        return None
    try:
        return parse_sas_date(text)
    except ValueError as error:
        raise MalformedSasError(f"{name}: {error}") from None


def _parse_addresses(text: str) -> AddressRange | None:
    if not text:
        return None
    first, dash, last = text.partition("-")
    try:
        lower = int(IPv4Address(first))
        return AddressRange(lower, int(IPv4Address(last)) if dash else lower)
    except AddressValueError:
        raise MalformedSasError("sip must be an IPv4 address or two with a dash between") from None


@lru_cache(maxsize=1024)
def _client_address(client: str) -> tuple[int, str]:
    """Return an address as a number (-1 if it is not IPv4) and as text; cached, as clients come back."""
    try:
        address = IPv6Address(client).ipv4_mapped if ":" in client else IPv4Address(client)
    except AddressValueError:
        address = None
    return (-1, client) if address is None else (int(address), str(address))


_NAMES = {
    "sv": "version",
    "ss": "services",
    "srt": "resource_types",
    "sp": "permission",
    "st": "start",
    "se": "expiry",
    "sip": "ip",
    "spr": "protocol",
    "ses": "encryption_scope",
    "sig": "signature",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSas:
    """The values of a token as they stand in its query, URL-decoded; "" is absent."""

    services: str
    """Some of `b`, `q`, `t` and `f`, in any order."""
    resource_types: str
    """Some of `s` (service), `c` (container: a table as a whole) and `o` (object: entities), in any order."""
    permission: str
    expiry: str
    start: str = ""
    ip: str = ""
    protocol: str = ""
    version: str = SIGNED_VERSION
    encryption_scope: str = ""
    signature: str = field(default="", repr=False)

    def terms(self) -> Terms:
        """Check the values and return the terms for each request.

        Raises:
            MalformedSasError: a required value is missing, or one is none of the documented forms.
        """
        check_version(self.version, ACCOUNT_SAS_SINCE)
        if not (self.services and self.resource_types and self.permission and self.expiry):
            raise MalformedSasError("an account SAS needs ss, srt, sp and se")
        return parse_terms(self.start, self.expiry, self.ip, self.protocol)

    def string_to_sign(self, account: str) -> str:
        """Return what the account's key signs."""
        lines = [account, self.permission, self.services, self.resource_types, self.start, self.expiry]
        lines += [self.ip, self.protocol, self.version]
        if self.version >= ENCRYPTION_SCOPE_SINCE:
            lines.append(self.encryption_scope)
        return "\n".join(lines) + "\n"

    def is_signed_by(self, account: Account) -> bool:
        """Whether the signature is one of the account's."""
        return is_signed(account, self.string_to_sign(account.name), self.signature)


def parse_account_sas(parameters: Mapping[str, str]) -> AccountSas:
    """Read a token from a request's query parameters.

    Raises:
        MalformedSasError: a required value is missing, or a value would make the string-to-sign ambiguous.
    """
    required = dict.fromkeys(("services", "resource_types", "permission", "expiry", "version"), "")
    return AccountSas(**(required | read_values(parameters, _NAMES)))


def sign_account_sas(account: Account, sas: AccountSas, key: int = 1) -> str:
    """Return the query string of a signed token.

    Args:
        account: the account whose key signs.
        sas: what is granted; its `signature` is not looked at.
        key: which of the account's keys signs, from 1.

    Raises:
        MalformedSasError: the values do not make a token.
        IndexError: the account has no such key.
    """
    values = {name: getattr(sas, attribute) for name, attribute in _NAMES.items()}
    read_values(values, _NAMES)
    sas.terms()
    values["sig"] = signature(account.signers[key - 1], sas.string_to_sign(account.name))
    return write_query(values)


_POLICY_ID_CHARACTERS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSas(ABC):
    """Hold the values of a token as they stand in its query, URL-decoded; "" is absent."""

    permission: str = ""
    """Letters in any order (*unverified*: the service may insist on the documented one)."""
    expiry: str = ""
    start: str = ""
    policy_id: str = ""
    ip: str = ""
    protocol: str = ""
    version: str = SIGNED_VERSION
    signature: str = field(default="", repr=False)

    @property
    @abstractmethod
    def policy_resource(self) -> str:
        """Return the name of the resource that holds the stored access policies of the token."""

    @property
    def signed_resource(self) -> str:
        """Return the name of the resource that the token signs."""
        return self.policy_resource

    @abstractmethod
    def scope(self) -> Scope:
        """Return the resources that the token grants access to."""

    def grant(self, permission: str) -> Grant:
        """Return what the token allows with permission letters, which may be those of its stored policy."""
        hides_rejections = self.version < REJECTIONS_NAMED_SINCE
        return Grant("service-sas", frozenset(permission), scope=self.scope(), hides_rejections=hides_rejections)

    @abstractmethod
    def string_to_sign(self, account: str) -> str:
        """Return the string that the key of an account signs, given the account's name."""

    def signed_lines(self, service: str, account: str) -> list[str]:
        """Return the lines that the tokens of all services sign, up to the version (reference §14.2).

        Args:
            service: the service's name, the first segment of the canonicalized resource.
            account: the account's name.
        """
        resource = f"/{account}/{self.signed_resource}"
        if self.version >= SAS_SERVICE_PREFIX_SINCE:
            resource = f"/{service}{resource}"
        lines = [self.permission, self.start, self.expiry, resource, self.policy_id]
        if self.version >= SAS_TRANSPORT_SINCE:
            lines += [self.ip, self.protocol]
        return [*lines, self.version]

    def terms(self) -> Terms:
        """Check the values and return the terms for each request.

        `sip` and `spr` of an old token are unsigned: the holder can leave them out, so they are ignored.

        Raises:
            MalformedSasError: a required value is missing, or one is none of the documented forms.
        """
        check_version(self.version)
        if len(self.policy_id) > _POLICY_ID_CHARACTERS_MAX:
            raise MalformedSasError("si is longer than 64 characters")
        if not self.policy_id and not (self.permission and self.expiry):
            raise MalformedSasError("a SAS without si needs sp and se")
        if self.version < SAS_TRANSPORT_SINCE:
            return parse_terms(self.start, self.expiry, "", "")
        return parse_terms(self.start, self.expiry, self.ip, self.protocol)

    def is_signed_by(self, account: Account) -> bool:
        """Whether the signature is one of the account's."""
        return is_signed(account, self.string_to_sign(account.name), self.signature)


def sign_service_sas(
    account: Account,
    key: int,
    sas: ServiceSas,
    values: dict[str, str],
    parse: Callable[[Mapping[str, str]], ServiceSas],
    **resource: str,
) -> str:
    """Return the query string of a signed token.

    Args:
        account: the account whose key signs.
        key: the number of the account's key that signs, from 1.
        sas: the grant; its `signature` is ignored.
        values: its query parameters.
        parse: reads a token of the service.
        **resource: the fields that requests have beside the parameters.

    Raises:
        MalformedSasError: the values do not make a token, or it would not sign all of them.
        IndexError: the account has no such key.
    """
    if sas.version < SAS_TRANSPORT_SINCE and (sas.ip or sas.protocol):
        raise MalformedSasError(f"sip and spr need sv {SAS_TRANSPORT_SINCE} or later")
    parse({name: value for name, value in (values | resource).items() if value}).terms()
    return write_query({**values, "sig": signature(account.signers[key - 1], sas.string_to_sign(account.name))})


def apply_policy(sas: ServiceSas, terms: Terms, policy: StoredAccessPolicy) -> tuple[str, Terms]:
    """Return the permission letters and the terms that a token and its stored policy make together.

    Raises:
        MalformedSasError: both say the same thing (*unverified*: documented as an error, never recorded), or neither
            grants a permission or has an expiry.
    """
    if (
        (policy.start is not None and terms.start is not None)
        or (policy.expiry is not None and terms.expiry is not None)
        or (policy.permission and sas.permission)
    ):
        raise MalformedSasError("the token repeats what its stored policy says")
    permission = policy.permission or sas.permission
    start = policy.start if policy.start is not None else terms.start
    expiry = policy.expiry if policy.expiry is not None else terms.expiry
    if not permission or expiry is None:
        raise MalformedSasError("neither the token nor its stored policy has a permission and an expiry")
    return permission, replace(terms, start=start, expiry=expiry)


SAS_CACHE_ENTRIES_MAX = 4096
"""How many verified tokens are cached, and how many query strings that hold one."""

Values = tuple[str | None, ...]
"""The values of a query's parameters that the signature covers, in the order of their kind's names."""

VALUES_LENGTH_MAX = 1024
"""Characters of a token, or of a query string, that is cached; a longer token is verified each time."""


@dataclass(frozen=True, slots=True)
class VerifiedSas:
    """A token whose form and signature are right. Implements `VerifiedCredentials`."""

    account: Account
    terms: Terms
    grant: Grant
    serves: bool
    """Whether it names this service."""
    policy_sas: ServiceSas | None
    """The token, if a stored policy completes it."""

    @property
    def lasts(self) -> bool:
        """Whether nothing else can end it: a stored policy can."""
        return self.policy_sas is None

    def check(self, request: Request, now: int) -> None:
        """Reject a request that the token is not for at the time `now`, in ticks.

        Raises:
            ServiceError: 403. An Authorization header would win over the token.
        """
        if "authorization" in request.headers:
            raise ServiceError("AuthenticationFailed")
        terms = self.terms
        terms.check_time(now)
        if terms.https_only or terms.addresses is not None:
            terms.check_transport(request.scheme, request.client)
        if not self.serves:
            raise ServiceError("AuthorizationServiceMismatch")

    def repeated(self, marked: Request, names: Sequence[str]) -> "RepeatedSas | None":  # noqa: ARG002 - the interface
        """See `VerifiedCredentials`: the head has the token, and the scheme; it does not have the client's address."""
        if self.terms.addresses is not None or not self.lasts:
            return None
        return RepeatedSas(self.terms)


class RepeatedSas(NamedTuple):
    """A token that came again. Implements `RepeatedCredentials`."""

    terms: Terms

    @property
    def checked(self) -> Sequence[int]:
        """See `RepeatedCredentials`: none."""
        return ()

    def accept(self, _: HeadValues, now: int) -> bool:
        """See `RepeatedCredentials`: the time alone can have ended it."""
        return self.terms.is_current(now)


class SasCache:
    """Verified tokens by their values and by the query strings that hold them, the recently used ones.

    Looking up a signature by hash tells an attacker nothing: hashes are keyed, and unequal hashes are not compared
    further.
    """

    def __init__(self, entries_max: int) -> None:
        self._recent: LruCache[Values, VerifiedSas] = LruCache(entries_max)
        self._queries: LruCache[str, VerifiedSas] = LruCache(entries_max)
        """The same by whole query strings, which clients repeat. A client that fills it with one token in many
        forms makes others look their tokens up by values, no more."""

    def __len__(self) -> int:
        return len(self._recent)

    def repeated(self, query: str, account: Account) -> VerifiedSas | None:
        """Return the token in a query string that came before, if this very account object verified it."""
        entry = self._queries.get(query)
        return entry if entry is not None and entry.account is account else None

    def note(self, query: str, entry: VerifiedSas) -> None:
        """Cache the query string that a verified token came in, unless it is uncommonly long."""
        if len(query) <= VALUES_LENGTH_MAX:
            self._queries.put(query, entry)

    def get(self, values: Values, account: Account) -> VerifiedSas | None:
        """Return the token with these values if this very account object verified it."""
        entry = self._recent.get(values)
        return entry if entry is not None and entry.account is account else None

    def put(self, values: Values, entry: VerifiedSas) -> None:
        """Cache a token, unless it is uncommonly long."""
        if sum(len(value) for value in values if value) <= VALUES_LENGTH_MAX:
            self._recent.put(values, entry)
