"""Credentials that were found good, as further requests with the same words present them.

A request plan (`service.request_plan`) holds one of these objects. It says whether a request presents the credentials
that the plan was made with, and whether they are valid now. It rejects nothing: the authenticator does.

Only credentials that nothing else can end are cached. A stored access policy, an address range or a bearer token
has to be looked at by the authenticator each time. A rotated key makes another account object, which the plan notices.
"""

import hmac
from dataclasses import dataclass
from typing import Protocol

from lazulite.auth.accounts.account import Account
from lazulite.auth.sas.terms import Terms
from lazulite.auth.shared_key import Canonicalize, Credentials, is_current
from lazulite.protocol.message import Request


class CachedCredentials(Protocol):
    """Credentials of an account."""

    def hold(self, request: Request, now: int) -> bool:
        """Return whether a request with the same words presents them, and they are valid.

        Args:
            request: its method, path, query string, scheme and steady fields are those of the first request, but for
                the keys in the path.
            now: the time, in ticks.
        """
        ...


@dataclass(frozen=True, slots=True)
class CachedSas:
    """A shared access signature, which the query string holds. An Authorization header would win over it."""

    terms: Terms

    def hold(self, request: Request, now: int) -> bool:
        """See `CachedCredentials`."""
        return "authorization" not in request.headers and self.terms.is_current(now)


class CachedSharedKey:
    """An account's keys, one of which signs each request.

    Args:
        account: has the keys.
        header: the Authorization header of the first request.
        credentials: that header, taken apart.
        comp: the value of the query parameter.
        canonicalize: the service's string-to-sign.
        window_seconds: how far the date of a request may be off.
    """

    __slots__ = ("_account", "_canonicalize", "_comp", "_scheme", "_start", "_window_seconds")

    def __init__(
        self,
        account: Account,
        header: str,
        credentials: Credentials,
        comp: str | None,
        canonicalize: Canonicalize,
        window_seconds: int,
    ) -> None:
        self._account = account
        self._scheme = credentials.scheme
        self._start = header.removesuffix(credentials.signature)
        self._comp = comp
        self._canonicalize = canonicalize
        self._window_seconds = window_seconds

    def hold(self, request: Request, now: int) -> bool:
        """See `CachedCredentials`. Only the path as it was sent counts as signed."""
        header = request.headers.get("authorization", "")
        if not header.startswith(self._start) or not is_current(request, now, self._window_seconds):
            return False
        account = self._account
        text = self._canonicalize(self._scheme, request, account.name, request.path, self._comp)
        try:
            message = text.encode("latin-1")
        except UnicodeEncodeError:
            return False
        claimed = header[len(self._start) :].encode("latin-1", "replace")
        return any(hmac.compare_digest(signer.sign(message), claimed) for signer in account.signers)
