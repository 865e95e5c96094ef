"""The quota of accounts that several processes share, as one of them spends it: in slices.

Invariants:
- a process spends no more than it has taken from the ledger, but for the last request of a slice and for what a request
  cost beyond its price, such as the rows that it scanned. That is a debt, and is paid before anything else is taken;
- a process keeps one slice at most. So over any time, what all processes pass differs from the account's quota by one
  slice for each process at most;
- of each bucket, one call of the ledger is under way at a time, and an empty ledger is not asked again at once.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from lazulite.engine.contract import EngineError
from lazulite.partitions.gate import Bucket, Limit
from lazulite.partitions.ledger import ENTRIES_MAX, Ledger

SLICE_SECONDS: Final = 0.1
"""A slice is what an account may spend in so many seconds."""
PAUSE_SECONDS: Final = 0.05
"""The time between two questions to a ledger that had too little."""


@dataclass(slots=True)
class _Slice:
    """What this process has of a bucket."""

    bucket: Bucket
    """Does not fill with time."""
    asking: asyncio.Task[bool] | None = None
    """Asks the ledger; returns whether it gave anything."""
    pauses_until: float = float("-inf")


class SharedQuota:
    """An `AccountQuota` of several processes.

    Args:
        ledger: of all processes.
        burst_seconds: how many seconds of unused rate an account may spend at once.
    """

    def __init__(self, ledger: Ledger, burst_seconds: float) -> None:
        self._ledger = ledger
        self._burst_seconds = burst_seconds
        self._slices: dict[tuple[str, Limit], _Slice] = {}

    def bucket(self, account: str, limit: Limit, cap: float, now: float) -> Bucket:
        """See `AccountQuota`."""
        return self._slice(account, limit, cap, now).bucket

    async def refill(self, account: str, limit: Limit, cost: float, cap: float, now: float) -> None:
        """See `AccountQuota`."""
        found = self._slice(account, limit, cap, now)
        while not found.bucket.has(cost, now):
            if found.asking is None:
                if now < found.pauses_until:
                    return
                found.asking = asyncio.ensure_future(self._ask(found, (account, limit), cap, now))
            if not await asyncio.shield(found.asking):
                return

    async def _ask(self, found: _Slice, key: tuple[str, Limit], cap: float, now: float) -> bool:
        """Ask the ledger for the rest of a slice; return whether it gave anything."""
        bucket = found.bucket
        debt, wanted = max(0.0, -bucket.tokens), bucket.size - max(0.0, bucket.tokens)
        given = 0.0
        try:
            size = cap * self._burst_seconds
            given = await self._ledger.take(key[0], key[1].value, debt, wanted, cap, size, now)
            bucket.tokens += debt + given
        except EngineError:  # The debt is paid later, and nothing is spent until then.
            pass
        finally:
            found.asking = None
        if given < wanted:
            found.pauses_until = now + PAUSE_SECONDS
        return given > 0

    def _slice(self, account: str, limit: Limit, cap: float, now: float) -> _Slice:
        found = self._slices.get((account, limit))
        if found is None:
            if len(self._slices) >= ENTRIES_MAX:
                self._slices.clear()
            found = self._slices[account, limit] = _Slice(Bucket(0, 0, 0, now))
        found.bucket.size = cap * SLICE_SECONDS
        return found
