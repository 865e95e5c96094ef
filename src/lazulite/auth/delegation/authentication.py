"""Requests with a user delegation SAS.

A token is checked in this order: form, signature, time of the token and of its key, protocol, address, service, the
bearer token that it is bound to. The permission of a request is what the token and the roles of its user both permit.
"""

from collections.abc import Callable, Mapping

from lazulite.auth.accounts.account import Account
from lazulite.auth.delegation.sas import DELEGATION_SAS_PARAMETERS, DelegationSas, ParseDelegationSas
from lazulite.auth.delegation.store import DelegationStore
from lazulite.auth.grant import Grant
from lazulite.auth.sas import MalformedSasError, Terms, malformed, signature_mismatch
from lazulite.protocol.clock import Clock
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import repeated_names

_PARAMETERS = frozenset(DELEGATION_SAS_PARAMETERS)


class DelegationAuthentication:
    """Authenticates requests of one service that carry a user delegation SAS.

    Args:
        store: the secrets and the users.
        letter: the letter of the service.
        parse: see `ServiceCredentials.parse_delegation_sas`.
        actions: returns the actions that the values of role claims permit.
        clock: the time now.
    """

    def __init__(
        self,
        store: DelegationStore,
        letter: str,
        parse: ParseDelegationSas,
        actions: Callable[[frozenset[str]], frozenset[str]],
        clock: Clock,
    ) -> None:
        self._store = store
        self._letter = letter
        self._parse = parse
        self._actions = actions
        self._clock = clock

    async def authenticate(
        self, account: Account, request: Request, fields: Mapping[str, str], bearer: Grant | None
    ) -> Grant:
        """Return what a token permits.

        Args:
            account: the addressed account.
            request: for its scheme and client address.
            fields: of the token.
            bearer: the grant of the request's bearer token; None without one.

        Raises:
            ServiceError: `AuthenticationFailed`, or a rejection of the protocol or the address.
        """
        try:
            sas, terms, key_terms = self._read(request, fields)
        except MalformedSasError as error:
            raise malformed(error) from None
        if not await self._is_signed(sas, account.name):
            raise signature_mismatch(next(iter(sas.strings_to_sign(account.name)), ""))
        now = self._clock()
        terms.check_time(now)
        key_terms.check_time(now, "key time frame")  # *Unverified*: the words.
        terms.check_transport(request.scheme, request.client)
        if sas.key.service != self._letter:
            raise ServiceError("AuthenticationFailed")
        _check_bearer(sas, bearer)
        user = await self._store.user(account.name, sas.key.oid, sas.key.tid)
        actions = frozenset[str]() if user is None else self._actions(user.identity.roles)
        return sas.grant(actions)

    async def _is_signed(self, sas: DelegationSas, account: str) -> bool:
        if sas.is_signed_by(await self._store.secrets(account), account):
            return True
        return sas.is_signed_by(await self._store.newest_secrets(account), account)

    def _read(self, request: Request, fields: Mapping[str, str]) -> tuple[DelegationSas, Terms, Terms]:
        """Return a token, its terms, and those of its key. Raises `MalformedSasError`."""
        if not _PARAMETERS.isdisjoint(repeated_names(request.query)):
            raise MalformedSasError("a field comes twice")
        sas = self._parse(fields, request.headers)
        return sas, sas.terms(), sas.key_terms()

    async def note(self, account: Account, grant: Grant) -> None:
        """Take over the roles of a bearer token, which bound what the keys of its user permit."""
        if grant.identity is not None:
            await self._store.note(account.name, grant.identity)


def _check_bearer(sas: DelegationSas, bearer: Grant | None) -> None:
    """Reject a token that is bound to another user than the bearer of the request's token."""
    if not (sas.user_oid or sas.key.delegated_tid):
        return
    identity = None if bearer is None else bearer.identity
    tenant = sas.key.delegated_tid or sas.key.tid
    if identity is None or not sas.user_oid or (identity.oid, identity.tid) != (sas.user_oid, tenant):
        raise ServiceError("AuthenticationFailed")
