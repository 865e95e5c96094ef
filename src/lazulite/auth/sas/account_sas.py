"""The account SAS: a token over a whole account, bounded by services, resource types and permissions.

Source: reference §14.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lazulite.auth.accounts.account import Account
from lazulite.auth.sas.terms import (
    SIGNED_VERSION,
    MalformedSasError,
    Terms,
    check_version,
    is_signed,
    parse_terms,
    read_values,
    signature,
    write_query,
)
from lazulite.protocol.version import ACCOUNT_SAS_SINCE, ENCRYPTION_SCOPE_SINCE

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
    """Of `b`, `q`, `t` and `f`, in any order."""
    resource_types: str
    """Of `s` (service), `c` (container: a table as a whole) and `o` (object: entities), in any order."""
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
        MalformedSasError: a required value is missing, or a value could be re-cut.
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
