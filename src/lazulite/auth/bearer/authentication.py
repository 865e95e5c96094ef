"""Bearer tokens on requests: which are accepted, what a rejection says, and the challenge. Source: reference §2, §14.7.

Invariants:
- a token is cached by its hash and nothing else of it is, only once verified, and only for the very key set that
  verified it: a key that leaves the set ends its tokens at once. Its time is looked at on each request;
- a token is believed on an encrypted connection only, unless that was waived.
"""

from hashlib import sha256
from typing import NamedTuple, Protocol

from lazulite.auth.bearer.jwks import KeySet
from lazulite.auth.bearer.rules import REJECTED, BearerConventions, BearerRules
from lazulite.auth.bearer.token import BadTokenError, UnknownKeyError, VerifiedToken, check_token
from lazulite.auth.grant import Grant
from lazulite.protocol.clock import Clock, unix_seconds
from lazulite.protocol.errors import AUTHENTICATION_DETAIL, ServiceError
from lazulite.protocol.lru_cache import LruCache

TOKEN_CACHE_ENTRIES_MAX = 4096
"""How many verified tokens are cached."""
_RENEWALS_MAX = 3
"""How often a token of an unknown key may ask for newer keys; each answer must differ from the one before."""


class KeysUnavailableError(Exception):
    """There are no keys, or none fresh enough to be trusted."""


class KeySource(Protocol):
    """Where the issuer's keys come from."""

    async def current(self) -> KeySet:
        """Return the keys in force, the same object as long as they are the same.

        Raises:
            KeysUnavailableError: there are none.
        """
        ...

    async def renewed(self, known: KeySet) -> KeySet:
        """Look for newer keys than `known`, as soon as another look is due; return those in force then.

        Raises:
            KeysUnavailableError: there are none.
        """
        ...


class _CachedToken(NamedTuple):
    keys: KeySet
    verified: VerifiedToken
    grant: Grant


class BearerAuthentication:
    """Authenticates requests of one service that carry a bearer token.

    Args:
        conventions: of the service.
        rules: what a token must say.
        keys: the issuer's.
        clock: the time now.
        allow_http: whether tokens are accepted on connections without encryption.
        cache_entries_max: how many verified tokens are cached.
    """

    def __init__(
        self,
        conventions: BearerConventions,
        rules: BearerRules,
        keys: KeySource,
        clock: Clock,
        *,
        allow_http: bool,
        cache_entries_max: int = TOKEN_CACHE_ENTRIES_MAX,
    ) -> None:
        self._conventions = conventions
        self._rules = rules
        self._keys = keys
        self._clock = clock
        self._allow_http = allow_http
        self._cache: LruCache[bytes, _CachedToken] = LruCache(cache_entries_max)
        self._challenge = challenge(rules)

    def challenge(self, scheme: str, version: str) -> str | None:
        """Return the `WWW-Authenticate` that invites to come back with a token; None where none would be accepted."""
        challenged = version >= self._conventions.challenge_since
        return self._challenge if challenged and self._accepts(scheme) else None

    def actions(self, roles: frozenset[str]) -> frozenset[str]:
        """Return the actions that claim values permit in the service."""
        return self._rules.actions(self._conventions.roles, roles)

    async def authenticate(self, token: str, scheme: str, version: str, account: str) -> Grant:
        """Return what the token's bearer may do.

        Args:
            token: the text after `Bearer`, blanks removed.
            scheme: of the request's URL.
            version: of the request.
            account: the name of the addressed account.

        Raises:
            ServiceError: 401 by the service's conventions, the token proves nothing (another code of theirs before
                there were challenges); 400 `InvalidAuthenticationInfo`, the version takes none; 403
                `AuthorizationProtocolMismatch`, the request came over http; 503 `ServerBusy`, the issuer's keys
                are missing.
        """
        conventions = self._conventions
        if version < conventions.since:
            raise ServiceError("InvalidAuthenticationInfo")
        if not self._accepts(scheme):
            # *Unverified*: the code; documented is only that https is required.
            raise ServiceError("AuthorizationProtocolMismatch")
        try:
            return await self._verify(token, account)
        except BadTokenError as error:
            # *Unverified*: good tokens below `challenge_since`, which azure-data-tables sends, are accepted.
            # The 403 was recorded for a bad one.
            details = [(AUTHENTICATION_DETAIL, str(error))]
            if version < conventions.challenge_since:
                raise ServiceError(conventions.unchallenged_rejection, details=details) from None
            raise ServiceError(conventions.rejection, REJECTED, status=401, details=details) from None
        except KeysUnavailableError:
            raise ServiceError("ServerBusy") from None

    def _accepts(self, scheme: str) -> bool:
        return scheme == "https" or self._allow_http

    async def _verify(self, token: str, account: str) -> Grant:
        keys = await self._keys.current()
        now = unix_seconds(self._clock())
        audiences = self._rules.accepted_audiences(self._conventions, account)
        digest = sha256(token.encode(errors="replace")).digest()
        known = self._cache.get(digest)
        if known is not None and known.keys is keys:
            known.verified.check(audiences, now)
            return known.grant
        for _ in range(_RENEWALS_MAX):
            try:
                verified = check_token(token, keys, self._rules, audiences, now)
            except UnknownKeyError:
                newer = await self._keys.renewed(keys)
                if newer is keys:
                    raise
                keys = newer
            else:
                identity = verified.identity
                grant = Grant("bearer", actions=self.actions(identity.roles), identity=identity)
                self._cache.put(digest, _CachedToken(keys, verified, grant))
                return grant
        raise BadTokenError("The issuer has no such key.")


def challenge(rules: BearerRules) -> str:
    """Return the challenge as SDKs read it: unquoted, blanks between, the tenant first in the path of the first URL."""
    authority = rules.issuer.removesuffix("/").removesuffix("/v2.0")
    text = f"Bearer authorization_uri={authority}/oauth2/authorize"
    resource = rules.audiences[0].removesuffix("/")
    # The JavaScript SDK parses it as a URL and fails on any other text.
    return f"{text} resource_id={resource}" if "://" in resource else text
