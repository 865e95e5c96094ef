"""Verified shared access signatures, cached: checking a signature again costs more than answering a point query.

Invariants: bounded; an entry counts only for the very account object that verified it, so a rotated key ends it; what
may change between two requests (time, address, stored policy) is not cached.
"""

from dataclasses import dataclass

from lazulite.auth.accounts.account import Account
from lazulite.auth.grant import Grant
from lazulite.auth.sas.service_sas import ServiceSas
from lazulite.auth.sas.terms import Terms
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.lru_cache import Recent
from lazulite.protocol.message import Request

SAS_CACHE_ENTRIES_MAX = 4096
"""How many verified tokens are cached, and how many query strings that hold one."""

Values = tuple[str | None, ...]
"""The values of a query's parameters that the signature covers, in the order of their kind's names."""

VALUES_LENGTH_MAX = 1024
"""Characters of a token, or of a query string, that is cached; a longer token is verified each time."""


@dataclass(frozen=True, slots=True)
class VerifiedSas:
    """A token whose form and signature are right. Implements `VerifiedCredentials`."""

    account: Account
    terms: Terms
    grant: Grant
    serves: bool
    """Whether it names this service."""
    policy_sas: ServiceSas | None
    """The token, if a stored policy completes it."""

    @property
    def lasts(self) -> bool:
        """Whether nothing else can end it: a stored policy can."""
        return self.policy_sas is None

    def check(self, request: Request, now: int) -> None:
        """Reject a request that the token is not for at the time `now`, in ticks.

        Raises:
            ServiceError: 403. An Authorization header would win over the token.
        """
        if "authorization" in request.headers:
            raise ServiceError("AuthenticationFailed")
        self.terms.check_time(now)
        self.terms.check_transport(request.scheme, request.client)
        if not self.serves:
            raise ServiceError("AuthorizationServiceMismatch")


class SasCache:
    """Verified tokens by their values and by the query strings that hold them, the recently used ones.

    Looking up a signature by hash tells an attacker nothing: hashes are keyed, and unequal hashes are not compared
    further.
    """

    def __init__(self, entries_max: int) -> None:
        self._recent: Recent[Values, VerifiedSas] = Recent(entries_max)
        self._queries: Recent[str, VerifiedSas] = Recent(entries_max)
        """The same by whole query strings, which clients repeat. A client that fills it with one token in many
        forms makes others look their tokens up by values, no more."""

    def __len__(self) -> int:
        return len(self._recent)

    def repeated(self, query: str, account: Account) -> VerifiedSas | None:
        """Return the token in a query string that came before, if this very account object verified it."""
        entry = self._queries.get(query)
        return entry if entry is not None and entry.account is account else None

    def note(self, query: str, entry: VerifiedSas) -> None:
        """Cache the query string that a verified token came in, unless it is uncommonly long."""
        if len(query) <= VALUES_LENGTH_MAX:
            self._queries.put(query, entry)

    def get(self, values: Values, account: Account) -> VerifiedSas | None:
        """Return the token with these values if this very account object verified it."""
        entry = self._recent.get(values)
        return entry if entry is not None and entry.account is account else None

    def put(self, values: Values, entry: VerifiedSas) -> None:
        """Cache a token, unless it is uncommonly long."""
        if sum(len(value) for value in values if value) <= VALUES_LENGTH_MAX:
            self._recent.put(values, entry)
