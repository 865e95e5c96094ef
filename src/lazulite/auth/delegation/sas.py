"""A user delegation SAS: a service SAS that a user delegation key signs. A service derives its own.

Source: "Create a user delegation SAS" of the REST reference; reference §29.2, §46.2.
"""

import hmac
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from lazulite.auth.delegation.key import DelegationKey, Secret
from lazulite.auth.grant import Grant, Scope
from lazulite.auth.sas import MalformedSasError, Terms, check_version, parse_terms, read_values

MARKER = "skoid"
"""The query parameter that tells a user delegation SAS from other tokens."""
USER_MARKER = "sduoid"
"""The query parameter of a token that needs a bearer token, too."""
_KEY_NAMES = {
    "skoid": "oid",
    "sktid": "tid",
    "skt": "start",
    "ske": "expiry",
    "sks": "service",
    "skv": "version",
    "skdutid": "delegated_tid",
}
_NAMES = {
    "sv": "version",
    "sp": "permission",
    "st": "start",
    "se": "expiry",
    "sip": "ip",
    "spr": "protocol",
    "sduoid": "user_oid",
    "sig": "signature",
}
DELEGATION_SAS_PARAMETERS = (*_NAMES, *_KEY_NAMES)
"""Every query parameter that takes part in a token of any service."""
_REQUIRED_OF_KEY = ("oid", "tid", "start", "expiry", "service", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationSas(ABC):
    """Hold the values of a token as they stand in its query, URL-decoded; "" is absent."""

    key: DelegationKey
    permission: str = ""
    expiry: str = ""
    start: str = ""
    ip: str = ""
    protocol: str = ""
    version: str = ""
    user_oid: str = ""
    """The object id of the user that alone may use the token."""
    signature: str = field(default="", repr=False)

    @property
    @abstractmethod
    def since(self) -> str:
        """Return the first version that has such tokens."""

    @abstractmethod
    def scope(self) -> Scope:
        """Return the resources that the token grants access to."""

    def grant(self, actions: frozenset[str]) -> Grant:
        """Return what the token allows, given the actions that the roles of its user permit."""
        return Grant("delegation-sas", frozenset(self.permission), scope=self.scope(), actions=actions)

    @abstractmethod
    def strings_to_sign(self, account: str) -> Iterable[str]:
        """Return the strings that the key may have signed, given the account's name.

        Where a version has several, no two of them have the same lines for other values.
        """

    def terms(self) -> Terms:
        """Check the values and return the terms for each request.

        Raises:
            MalformedSasError: a required value is missing, or one is none of the documented forms.
        """
        check_version(self.version, self.since)
        check_version(self.key.version, self.since)
        if not (self.permission and self.expiry and all(getattr(self.key, name) for name in _REQUIRED_OF_KEY)):
            raise MalformedSasError("a user delegation SAS needs sp, se and every field of its key")
        return parse_terms(self.start, self.expiry, self.ip, self.protocol)

    def key_terms(self) -> Terms:
        """Return the terms of the key.

        Raises:
            MalformedSasError: as `terms`.
        """
        return parse_terms(self.key.start, self.key.expiry, "", "")

    def is_signed_by(self, secrets: Iterable[Secret], account: str) -> bool:
        """Return whether a key of one of the secrets made the signature. Takes the same time for any wrong one."""
        texts, claimed = [text.encode() for text in self.strings_to_sign(account)], self.signature.encode()
        keys = [self.key.value(secret, account) for secret in secrets]
        signatures = [b64encode(hmac.digest(key, text, sha256)) for key in keys for text in texts]
        matches = [hmac.compare_digest(signature, claimed) for signature in signatures]
        return any(matches)


ParseDelegationSas = Callable[[Mapping[str, str], Mapping[str, str]], DelegationSas]
"""(fields of a token, headers of the request) -> the token; raises `MalformedSasError`."""


def read_delegation_values(parameters: Mapping[str, str]) -> tuple[DelegationKey, dict[str, str]]:
    """Return the key and the other fields of a `DelegationSas` from query parameters.

    Raises:
        MalformedSasError: a value would make the string-to-sign ambiguous, or the token names a stored access policy,
            which has no part in it.
    """
    if parameters.get("si"):
        raise MalformedSasError("a user delegation SAS has no stored access policy")
    names = dict.fromkeys(_KEY_NAMES.values(), "")
    key = DelegationKey(**(names | read_values(parameters, _KEY_NAMES)))
    return key, read_values(parameters, _NAMES)
