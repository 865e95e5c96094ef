"""The common parts of account and service shared access signatures (SAS): their terms, and the signature itself.

Invariants:
- a token's values enter its string-to-sign exactly as they stand in the query, URL-decoded, never re-spelled;
- no value may hold a line feed. The string-to-sign joins values by line feeds, so such a value could be re-cut into
  other values under the same signature;
- an empty value means the same as an absent one, for both sign the same.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple
from urllib.parse import quote

from lazulite.auth.accounts.account import Account
from lazulite.auth.hmac_signer import Signer
from lazulite.auth.sas.dates import parse_sas_date, ticks_of
from lazulite.protocol.clock import format_http_date
from lazulite.protocol.errors import ServiceError, authentication_failed
from lazulite.protocol.version import SAS_SINCE, is_version

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

    def check_time(self, now: int, frame: str = "time frame") -> None:
        """Reject with `AuthenticationFailed` outside of start to expiry (both included).

        Args:
            now: the time, in ticks.
            frame: what the rejection calls start to expiry.
        """
        if self.expiry is not None and now <= self.expiry and (self.start is None or now >= self.start):
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
        MalformedSasError: a value is none of the documented forms.
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
