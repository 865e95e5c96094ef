"""Requests without credentials: what a service permits to them, and how it rejects the others (reference §15)."""

from collections.abc import Mapping
from typing import Protocol

from lazulite.auth.accounts.account import Account
from lazulite.auth.grant import Grant
from lazulite.auth.service_credentials import ServiceCredentials
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.version import RequestVersion


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
        hidden = version.is_stated_before(service.challenged_since) if version.stated else service.hides_from_unstated
        return "ResourceNotFound" if hidden else "NoAuthenticationInformation"
