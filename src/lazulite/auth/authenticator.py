"""Authentication of a request: Shared Key, SAS or bearer token in, `VerifiedCredentials` with their `Grant` out.

Invariants (reference §14.6, §15):
- an Authorization header wins over a SAS beside it, unless the SAS is bound to the user of the header's token;
- a SAS with a repeated field is malformed, since readers could choose different values (*unverified* on the real
  service);
- a SAS is checked in this order: form, signature, time, protocol, address, service; `grant.authorize` goes on with
  resource type and permission;
- only the form and the signature of a SAS are cached, and only for the account object that they were checked with, so
  a rotated key evicts them. Time, protocol, address and stored policy are checked on each request;
- credentials that last are checked by one method, for the request that they came with and for further ones with the
  same cache key (`service.plans`). A stored policy, a bearer token and public access are looked at each time instead.

The rules in which services differ are their `ServiceCredentials` and their `PublicAccess`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.bearer.rules import REJECTED, BearerConventions
from lazulite.auth.delegation.authentication import DelegationAuthentication
from lazulite.auth.delegation.sas import MARKER as DELEGATION_MARKER
from lazulite.auth.delegation.sas import USER_MARKER, ParseDelegationSas
from lazulite.auth.delegation.store import DelegationStore
from lazulite.auth.grant import Grant
from lazulite.auth.sas import (
    ACCOUNT_SAS_PARAMETERS,
    SAS_CACHE_ENTRIES_MAX,
    MalformedSasError,
    SasCache,
    ServiceSas,
    VerifiedSas,
    apply_policy,
    malformed,
    parse_account_sas,
    signature_mismatch,
)
from lazulite.auth.shared_key import REQUEST_AGE_SECONDS_MAX, Canonicalize, NormalizePath, SharedKey
from lazulite.protocol.addressing import Address
from lazulite.protocol.clock import Clock
from lazulite.protocol.errors import ServiceError, authentication_failed
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import repeated_names
from lazulite.protocol.template import HeadValues
from lazulite.protocol.version import NEWEST, REJECTIONS_NAMED_SINCE, RequestVersion
from lazulite.records.catalog import StoredAccessPolicy

if TYPE_CHECKING:
    # It needs the extra oidc.
    from lazulite.auth.bearer.authentication import BearerAuthentication


_ACCOUNT_SAS_MARKER = "ss"


@dataclass(frozen=True, slots=True)
class ServiceCredentials:
    """The rules of one service."""

    letter: str
    """The letter of the service in an account SAS."""
    canonicalize: Canonicalize
    """The string-to-sign of Shared Key."""
    sas_marker: str
    """The query parameter that tells a service SAS from an account SAS."""
    sas_parameters: tuple[str, ...]
    """Every query parameter that takes part in a service SAS."""
    parse_sas: Callable[[Mapping[str, str]], ServiceSas]
    """Read a service SAS from query parameters; raise `MalformedSasError`."""
    bearer: BearerConventions
    """The roles of bearer tokens, and their codes."""
    challenged_since: str = REJECTIONS_NAMED_SINCE
    """The first version that rejects a request without credentials with 401, not with 404 `ResourceNotFound`."""
    hides_from_unversioned: bool = False
    """Whether a request without credentials that states no version gets the 404."""
    normalize_path: NormalizePath | None = None
    """What a path names, as the service signs it by Shared Key, too (§44). None: only the path that came is signed."""
    parse_delegation_sas: ParseDelegationSas | None = None
    """Read a user delegation SAS of a request. None: there are none."""
    sas_resource: Callable[[str, Mapping[str, str]], Mapping[str, str]] | None = None
    """Returns the fields of the resource that a service SAS signs, given the path below the account, percent-encoded,
    and the query parameters. `sas_marker` is one of the fields. No client can send them: each name has an upper-case
    letter. None: query parameters name the resource."""

    def sas_fields(self, path: str, parameters: Mapping[str, str]) -> Mapping[str, str]:
        """Return the fields of a SAS: the query parameters, and those of the resource if a service SAS signs it."""
        if self.sas_resource is None or _ACCOUNT_SAS_MARKER in parameters:
            return parameters
        return {**parameters, **self.sas_resource(path, parameters)}


class PublicAccess(Protocol):
    """What one service permits."""

    async def grant(
        self, account: Account, method: str, path: str, parameters: Mapping[str, str], code: str
    ) -> Grant | None:
        """Return what a request may do; None: nothing, whatever its operation is.

        Args:
            account: the addressed account.
            method: of the request.
            path: the path below the account, percent-encoded.
            parameters: the query, parsed.
            code: the code for everything that is not public.

        Raises:
            ServiceError: a rejection with another code.
        """
        ...


class AnonymousAuthentication:
    """Authenticates requests of one service that have no credentials.

    Args:
        service: the rules of the service.
        public_access: what it permits; None: nothing.
    """

    def __init__(self, service: ServiceCredentials, public_access: PublicAccess | None) -> None:
        self._service = service
        self._public_access = public_access

    async def authenticate(
        self, account: Account, method: str, path: str, parameters: Mapping[str, str], version: RequestVersion
    ) -> Grant:
        """Return what a request may do.

        Args:
            account: the addressed account.
            method: of the request.
            path: the path below the account, percent-encoded.
            parameters: the query, parsed.
            version: of the request.

        Raises:
            ServiceError: nothing; or as `PublicAccess.grant`.
        """
        code = self._code(version)
        if self._public_access is not None:
            grant = await self._public_access.grant(account, method, path, parameters, code)
            if grant is not None:
                return grant
        raise ServiceError(code)

    def _code(self, version: RequestVersion) -> str:
        """Return the code of a rejection. *Unverified*: at which version 401 took the place of 404."""
        service = self._service
        hidden = (
            version.is_stated_before(service.challenged_since) if version.stated else service.hides_from_unversioned
        )
        return "ResourceNotFound" if hidden else "NoAuthenticationInformation"


Policies = Callable[[str, str], Awaitable[Sequence[StoredAccessPolicy]]]
"""(account name, `ServiceSas.policy_resource`) -> the stored access policies of that resource as they are now."""


class VerifiedCredentials(Protocol):
    """Credentials that were found good, but for what another request may differ in."""

    @property
    def grant(self) -> Grant:
        """What they permit."""
        ...

    @property
    def lasts(self) -> bool:
        """Whether `check` is all that further requests with the same cache key need, on the same account object."""
        ...

    def check(self, request: Request, now: int) -> None:
        """Reject a request that does not present them, or for which they are not valid now.

        Args:
            request: but for its keys and its changing fields, it is the one that they came with.
            now: the time, in ticks.

        Raises:
            ServiceError: any row of reference §15.
        """
        ...

    def repeated(self, marked: Request, names: Sequence[str]) -> "RepeatedCredentials | None":
        """Return what checks requests with the same head but for its values; None: they are checked by `check` alone.

        Args:
            marked: such a request, with a mark in place of each value (`protocol.template`).
            names: of the values.
        """
        ...


class RepeatedCredentials(Protocol):
    """Credentials of requests that differ in the values of their heads alone."""

    @property
    def checked(self) -> Sequence[int]:
        """The indices of the values that are of the usual form where `accept` is True."""
        ...

    def accept(self, values: HeadValues, now: int) -> bool:
        """Return whether `VerifiedCredentials.check` would pass a request with these values at `now`, in ticks.

        False may also mean that it is not of the usual form.
        """
        ...


@dataclass(frozen=True, slots=True)
class Granted:
    """Credentials that were checked completely. Implements `VerifiedCredentials`."""

    grant: Grant
    lasts: bool = False

    def check(self, request: Request, now: int) -> None:
        """See `VerifiedCredentials`: there is nothing left."""

    def repeated(self, marked: Request, names: Sequence[str]) -> None:
        """See `VerifiedCredentials`: it is looked at each time."""


class Authenticator:
    """Authenticates the requests of one service.

    Args:
        accounts: the accounts of the store.
        clock: the time now.
        policies: reads the stored access policies of a resource.
        credentials: the rules of the service.
        window_seconds: how far the date of a Shared Key request may be off, in either direction.
        cache_entries_max: how many verified SAS tokens are cached.
        bearer: checks bearer tokens; None where there is no issuer of such.
        delegations: the user delegation keys; None where there are none. They need bearer tokens.
        public_access: what requests without credentials may do; None: nothing.
    """

    def __init__(  # noqa: PLR0913 - most have a default
        self,
        accounts: AccountDirectory,
        clock: Clock,
        policies: Policies,
        credentials: ServiceCredentials,
        *,
        window_seconds: int = REQUEST_AGE_SECONDS_MAX,
        cache_entries_max: int = SAS_CACHE_ENTRIES_MAX,
        bearer: "BearerAuthentication | None" = None,
        delegations: DelegationStore | None = None,
        public_access: PublicAccess | None = None,
    ) -> None:
        self._accounts = accounts
        self._clock = clock
        self._policies = policies
        self._service = credentials
        self._sas_parameters = frozenset(ACCOUNT_SAS_PARAMETERS + credentials.sas_parameters)
        self._window_seconds = window_seconds
        self._cache = SasCache(cache_entries_max)
        self._bearer = bearer
        self._anonymous = AnonymousAuthentication(credentials, public_access)
        self._delegated: DelegationAuthentication | None = None
        parse = credentials.parse_delegation_sas
        if bearer is not None and delegations is not None and parse is not None:
            self._delegated = DelegationAuthentication(delegations, credentials.letter, parse, bearer.actions, clock)

    def account(self, address: Address) -> Account:
        """Return the account that is addressed.

        Raises:
            ServiceError: `ResourceNotFound`, there is none of that name.
        """
        account = self._accounts.get(address.account)
        if account is None:
            raise ServiceError("ResourceNotFound")
        return account

    async def authenticate(
        self,
        account: Account,
        request: Request,
        address: Address,
        parameters: Mapping[str, str],
        version: RequestVersion,
    ) -> VerifiedCredentials:
        """Return the credentials of a request, which were checked.

        Args:
            account: what `account` returned for the address.
            request: for its method, path, headers, scheme and client address.
            address: where it goes.
            parameters: its query, parsed.
            version: its version, which may be malformed.

        Raises:
            ServiceError: any row of reference §15.
        """
        credentials = await self._credentials_of(account, request, address, parameters, version)
        credentials.check(request, self._clock())
        return credentials

    async def _credentials_of(
        self,
        account: Account,
        request: Request,
        address: Address,
        parameters: Mapping[str, str],
        version: RequestVersion,
    ) -> VerifiedCredentials:
        header = request.headers.get("authorization")
        bearer: Grant | None = None
        if header is not None:
            if self._bearer is None or header.partition(" ")[0].lower() != "bearer":
                return self._shared_key(account, address, parameters.get("comp"), header)
            bearer = await self._by_bearer(account, request, version, header)
            if not (parameters.get(USER_MARKER) and DELEGATION_MARKER in parameters):
                return Granted(bearer)
        if DELEGATION_MARKER in parameters:
            if self._delegated is None:
                raise ServiceError("AuthenticationFailed")
            fields = self._service.sas_fields(address.resource, parameters)
            return Granted(await self._delegated.authenticate(account, request, fields, bearer))
        if "sig" in parameters or "sv" in parameters:
            return await self._by_sas(account, request, address, parameters)
        grant = await self._anonymous.authenticate(account, request.method, address.resource, parameters, version)
        return Granted(grant)

    def _shared_key(self, account: Account, address: Address, comp: str | None, header: str) -> SharedKey:
        """Return the credentials of an Authorization header. Raises as `SharedKey`."""
        if header[:7].lower() == "bearer ":
            # What a service without an identity provider says (reference §14.7).
            raise ServiceError("InvalidAuthenticationInfo", REJECTED, status=401)
        service = self._service
        return SharedKey(
            account, header, address, comp, service.canonicalize, service.normalize_path, self._window_seconds
        )

    async def _by_bearer(self, account: Account, request: Request, version: RequestVersion, header: str) -> Grant:
        """Return what a bearer token permits. Raises as `authenticate`."""
        assert self._bearer is not None, "there is an issuer"
        token, stated = header.partition(" ")[2].strip(), version.stated or NEWEST
        grant = await self._bearer.authenticate(token, request.scheme, stated, account.name)
        if self._delegated is not None:
            await self._delegated.note(account, grant)
        return grant

    async def _by_sas(
        self, account: Account, request: Request, address: Address, parameters: Mapping[str, str]
    ) -> VerifiedSas:
        """Return an account SAS or a service SAS, completed by its stored policy. Raises as `authenticate`."""
        try:
            fields = self._service.sas_fields(address.resource, parameters)
            verified = self._verified(account, request.query, fields)
            return verified if verified.policy_sas is None else await self._completed(verified, verified.policy_sas)
        except MalformedSasError as error:
            raise malformed(error) from None

    def challenge(self, scheme: str, version: RequestVersion) -> str:
        """Return the `WWW-Authenticate` of a 401: what credentials the request could have had."""
        if self._bearer is not None:
            return self._bearer.challenge(scheme, version.stated or NEWEST) or "SharedKey"
        return "SharedKey"

    def _verified(self, account: Account, query: str, parameters: Mapping[str, str]) -> VerifiedSas:
        """Return the token that a query holds, its form and signature checked: now, or at an earlier request.

        Args:
            account: the addressed account.
            query: the query string.
            parameters: `ServiceCredentials.sas_fields` of it.

        Raises:
            MalformedSasError: the form is wrong.
            ServiceError: `AuthenticationFailed`, the signature is.
        """
        service = self._service
        # The same query to another resource finds this token too, whose scope does not cover that resource.
        verified = self._cache.repeated(query, account)
        if verified is not None:
            return verified
        if not self._sas_parameters.isdisjoint(repeated_names(query)):
            raise MalformedSasError("a field comes twice")
        # Only the fields that the signature covers: with others, one token in many forms would fill the cache.
        names = service.sas_parameters if service.sas_marker in parameters else ACCOUNT_SAS_PARAMETERS
        values = tuple(map(parameters.get, names))
        verified = self._cache.get(values, account)
        if verified is None:
            verified = self._verify(account, parameters)
            self._cache.put(values, verified)
        self._cache.note(query, verified)
        return verified

    async def _completed(self, verified: VerifiedSas, sas: ServiceSas) -> VerifiedSas:
        """Return a token together with its stored policy."""
        policy = await self._policy(verified.account, sas)
        permission, terms = apply_policy(sas, verified.terms, policy)
        return replace(verified, terms=terms, grant=sas.grant(permission))

    async def _policy(self, account: Account, sas: ServiceSas) -> StoredAccessPolicy:
        for policy in await self._policies(account.name, sas.policy_resource):
            if policy.id == sas.policy_id:
                return policy
        raise authentication_failed("si names no stored access policy.")  # *Unverified*: the words.

    def _verify(self, account: Account, parameters: Mapping[str, str]) -> VerifiedSas:
        """Check form and signature.

        Raises:
            MalformedSasError: the form is wrong.
            ServiceError: `AuthenticationFailed`, the signature is.
        """
        service = self._service
        if service.sas_marker in parameters:
            sas = service.parse_sas(parameters)
            terms = sas.terms()
            if not sas.is_signed_by(account):
                raise signature_mismatch(sas.string_to_sign(account.name))
            policy_sas = sas if sas.policy_id else None
            return VerifiedSas(account, terms, sas.grant(sas.permission), True, policy_sas)
        token = parse_account_sas(parameters)
        terms = token.terms()
        if not token.is_signed_by(account):
            raise signature_mismatch(token.string_to_sign(account.name))
        grant = Grant("account-sas", frozenset(token.permission), token.resource_types)
        return VerifiedSas(account, terms, grant, service.letter in token.services, None)
