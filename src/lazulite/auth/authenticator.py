"""Who sends a request, and what the credentials allow: Shared Key, SAS or bearer token in, a `Grant` out.

Invariants (reference §14.6, §15):
- an Authorization header wins over a SAS beside it;
- a SAS of which a field comes twice is malformed: which of the two counts, readers could take differently (*unverified*
  on the real service);
- a SAS is checked in this order: form, signature, time, protocol, address, service; `grant.authorize` goes on with
  resource type and permission;
- only the form and the signature of a SAS are remembered, and only for the account object that they were checked with,
  so a rotated key ends them. Time, protocol, address and stored policy are looked at on each request.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.bearer.rules import REFUSED
from lazulite.auth.grant import SHARED_KEY_GRANT, Grant
from lazulite.auth.sas.account_sas import parse_account_sas
from lazulite.auth.sas.cache import SAS_CACHE_ENTRIES_MAX, SasCache, VerifiedSas
from lazulite.auth.sas.service_sas import ServiceSas, apply_policy, parse_service_sas
from lazulite.auth.sas.terms import (
    ACCOUNT_SAS_PARAMETERS,
    SAS_PARAMETERS,
    SERVICE_SAS_PARAMETERS,
    MalformedSasError,
    Terms,
)
from lazulite.auth.shared_key import (
    REQUEST_AGE_SECONDS_MAX,
    Canonicalize,
    check_date,
    check_signature,
    parse_authorization,
    table_string_to_sign,
)
from lazulite.auth.stored_policy import StoredAccessPolicy
from lazulite.protocol.addressing import Address
from lazulite.protocol.clock import Clock
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import repeated_names
from lazulite.protocol.version import NEWEST, REFUSALS_NAMED_SINCE, stated_version, states_older

if TYPE_CHECKING:
    # It needs the extra lazulite[oidc].
    from lazulite.auth.bearer.authentication import BearerAuthentication

Policies = Callable[[str, str], Awaitable[Sequence[StoredAccessPolicy]]]
"""(account name, table name in lower case) -> the table's stored access policies as they are now."""


class Authenticator:
    """Authenticates the requests of one service.

    Args:
        accounts: who there is.
        clock: the time now.
        policies: reads the stored access policies of a table.
        service: the service's letter in an account SAS.
        resource_prefix: the service's word in the canonical resource of a service SAS.
        window_seconds: how far the date of a Shared Key request may be off, in either direction.
        cache_entries_max: how many verified SAS tokens are remembered.
        canonicalize: the service's string-to-sign for Shared Key.
        bearer: checks bearer tokens; None where there is no issuer of such.
    """

    def __init__(  # noqa: PLR0913 - all but three have a default
        self,
        accounts: AccountDirectory,
        clock: Clock,
        policies: Policies,
        *,
        service: str = "t",
        resource_prefix: str = "table",
        window_seconds: int = REQUEST_AGE_SECONDS_MAX,
        cache_entries_max: int = SAS_CACHE_ENTRIES_MAX,
        canonicalize: Canonicalize = table_string_to_sign,
        bearer: "BearerAuthentication | None" = None,
    ) -> None:
        self._accounts = accounts
        self._clock = clock
        self._policies = policies
        self._service = service
        self._resource_prefix = resource_prefix
        self._window_seconds = window_seconds
        self._cache = SasCache(cache_entries_max)
        self._canonicalize = canonicalize
        self._bearer = bearer

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
        self, account: Account, request: Request, address: Address, parameters: Mapping[str, str]
    ) -> Grant:
        """Return what a request may do with an account.

        Args:
            account: what `account` returned for the address.
            request: for its method, path, headers, scheme and client address.
            address: where it goes.
            parameters: its query, parsed.

        Raises:
            ServiceError: any row of reference §15.
        """
        header = request.headers.get("authorization")
        if header is not None:
            scheme, _, token = header.partition(" ")
            if self._bearer is not None and scheme.lower() == "bearer":
                version = stated_version(request.headers, parameters) or NEWEST
                return await self._bearer.authenticate(token.strip(), request.scheme, version)
            self._check_shared_key(request, address, account, parameters.get("comp"), header)
            return SHARED_KEY_GRANT
        if "sig" in parameters or "sv" in parameters:
            try:
                verified = self._verified(account, request.query, parameters)
                terms, grant = verified.terms, verified.grant
                if verified.policy_sas is not None:
                    terms, grant = await self._completed(account, verified.policy_sas, terms)
            except MalformedSasError:
                raise ServiceError("AuthenticationFailed") from None
            terms.check_time(self._clock())
            terms.check_transport(request.scheme, request.client)
            if not verified.serves:
                raise ServiceError("AuthorizationServiceMismatch")
            return grant
        if states_older(request.headers, parameters, REFUSALS_NAMED_SINCE):
            raise ServiceError("ResourceNotFound")  # *Unverified*: at which version 401 took the place of 404.
        raise ServiceError("NoAuthenticationInformation")

    def challenge(self, request: Request, parameters: Mapping[str, str]) -> str:
        """Return the `WWW-Authenticate` of a 401: what credentials the request could have had."""
        if self._bearer is not None:
            version = stated_version(request.headers, parameters) or NEWEST
            return self._bearer.challenge(request.scheme, version) or "SharedKey"
        return "SharedKey"

    def _check_shared_key(
        self, request: Request, address: Address, account: Account, comp: str | None, header: str
    ) -> None:
        if header[:7].lower() == "bearer ":
            # What a service without an identity provider says (reference §14.7).
            raise ServiceError("InvalidAuthenticationInfo", REFUSED, status=401)
        credentials = parse_authorization(header)
        if credentials.account != account.name:
            raise ServiceError("AuthenticationFailed")
        check_date(request, self._clock(), self._window_seconds)
        check_signature(request, address, account, comp, credentials, self._canonicalize)

    def _verified(self, account: Account, query: str, parameters: Mapping[str, str]) -> VerifiedSas:
        """Return the token that a query holds, its form and signature checked: now, or at an earlier request.

        Raises:
            MalformedSasError: the form is wrong.
            ServiceError: `AuthenticationFailed`, the signature is.
        """
        verified = self._cache.repeated(query, account)
        if verified is not None:
            return verified
        if not SAS_PARAMETERS.isdisjoint(repeated_names(query)):
            raise MalformedSasError("a field comes twice")
        # Only what the signature covers, or anybody could fill the cache with one token in many guises.
        names = SERVICE_SAS_PARAMETERS if "tn" in parameters else ACCOUNT_SAS_PARAMETERS
        values = tuple(map(parameters.get, names))
        verified = self._cache.get(values, account)
        if verified is None:
            verified = self._verify(account, parameters)
            self._cache.put(values, verified)
        self._cache.note(query, verified)
        return verified

    async def _completed(self, account: Account, sas: ServiceSas, terms: Terms) -> tuple[Terms, Grant]:
        """Return what a token allows together with its stored policy."""
        permission, terms = apply_policy(sas, terms, await self._policy(account, sas))
        return terms, _service_grant(sas, permission)

    async def _policy(self, account: Account, sas: ServiceSas) -> StoredAccessPolicy:
        for policy in await self._policies(account.name, sas.table.lower()):
            if policy.id == sas.policy_id:
                return policy
        raise ServiceError("AuthenticationFailed")

    def _verify(self, account: Account, parameters: Mapping[str, str]) -> VerifiedSas:
        """Check form and signature.

        Raises:
            MalformedSasError: the form is wrong.
            ServiceError: `AuthenticationFailed`, the signature is.
        """
        if "tn" in parameters:
            sas = parse_service_sas(parameters)
            terms = sas.terms()
            if not sas.is_signed_by(account, self._resource_prefix):
                raise ServiceError("AuthenticationFailed")
            policy_sas = sas if sas.policy_id else None
            return VerifiedSas(account, terms, _service_grant(sas, sas.permission), True, policy_sas)
        token = parse_account_sas(parameters)
        terms = token.terms()
        if not token.is_signed_by(account):
            raise ServiceError("AuthenticationFailed")
        grant = Grant("account-sas", frozenset(token.permission), token.resource_types)
        return VerifiedSas(account, terms, grant, self._service in token.services, None)


def _service_grant(sas: ServiceSas, permission: str) -> Grant:
    return Grant(
        "service-sas",
        frozenset(permission),
        table=sas.table.lower(),
        key_range=sas.key_range(),
        hides_refusals=sas.version < REFUSALS_NAMED_SINCE,
    )
