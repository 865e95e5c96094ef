"""Verified shared access signatures, remembered: checking a signature again costs more than answering a point query.

Invariants: bounded; an entry counts only for the very account object that verified it, so a rotated key ends it; what
may change between two requests (time, address, stored policy) is not remembered.
"""

from typing import NamedTuple

from lazulite.protocol.accounts import Account
from lazulite.protocol.grant import Grant
from lazulite.protocol.sas_terms import Terms
from lazulite.protocol.service_sas import ServiceSas

SAS_CACHE_ENTRIES_MAX = 4096
"""How many verified tokens are remembered."""

Values = tuple[str | None, ...]
"""The values of a query's parameters that the signature covers, in the order of their kind's names."""

VALUES_LENGTH_MAX = 1024
"""Characters of a token that is remembered; a longer one is verified each time."""


class VerifiedSas(NamedTuple):
    """A token whose form and signature are right."""

    account: Account
    terms: Terms
    grant: Grant
    serves: bool
    """Whether it names this service."""
    policy_sas: ServiceSas | None
    """The token, if a stored policy completes it."""


class SasCache:
    """Verified tokens by their values, the recently used ones.

    Two generations: a hit in the old one moves to the young one, and a full young one becomes the old one. Looking up a
    signature by hash tells an attacker nothing: hashes are keyed, and unequal hashes are not compared further.
    """

    def __init__(self, entries_max: int) -> None:
        self._generation_max = max(1, entries_max // 2)
        self._young: dict[Values, VerifiedSas] = {}
        self._old: dict[Values, VerifiedSas] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, values: Values, account: Account) -> VerifiedSas | None:
        """Return the token with these values if this very account object verified it."""
        entry = self._young.get(values)
        if entry is None:
            entry = self._old.pop(values, None)
            if entry is None:
                return None
            self.put(values, entry)
        return entry if entry.account is account else None

    def put(self, values: Values, entry: VerifiedSas) -> None:
        """Remember a token, unless it is uncommonly long."""
        if sum(len(value) for value in values if value) > VALUES_LENGTH_MAX:
            return
        if len(self._young) >= self._generation_max:
            self._old, self._young = self._young, {}
        self._young[values] = entry
