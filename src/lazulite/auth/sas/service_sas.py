"""A service SAS: what the tokens of all services have in common, perhaps by a stored access policy (reference §14.2).

A service derives its own from `ServiceSas`: the values that it signs, and the scope that it grants.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lazulite.auth.accounts.account import Account
from lazulite.auth.grant import Grant, Scope
from lazulite.auth.sas.terms import (
    SIGNED_VERSION,
    MalformedSasError,
    Terms,
    check_version,
    is_signed,
    parse_terms,
    signature,
    write_query,
)
from lazulite.protocol.version import REJECTIONS_NAMED_SINCE, SAS_SERVICE_PREFIX_SINCE, SAS_TRANSPORT_SINCE
from lazulite.records.catalog import StoredAccessPolicy

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
        """Return the resources within reach."""

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
