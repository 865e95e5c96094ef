"""The ledger of accounts: what all processes of a store may still spend of each account's quota.

An account has a bucket for each limit. A process takes *slices* from it (`slices`), and pays what it has overspent.

Invariants:
- a bucket fills at the account's cap up to a burst, and pays out no more than it has. A debt is paid first;
- the time of a bucket does not step back, so that processes whose clocks differ fill it once for each second. A bucket
  whose time lies more than `AHEAD_SECONDS_MAX` ahead goes on from now, as a clock was wrong;
- a bucket that is damaged or unknown is full.
"""

import struct
from math import isfinite
from typing import NamedTuple, Protocol

from lazulite.engine.commit import Decision, change_row
from lazulite.engine.contract import Engine, Key
from lazulite.engine.remote.procedures import PLAIN, Interface, Method
from lazulite.records.spaces import ACCOUNT_QUOTAS, Space

AHEAD_SECONDS_MAX = 10.0
ENTRIES_MAX = 10_000
"""The buckets in memory; all are full again when there are more."""
_TOKENS = struct.Struct(">dd")


class Tokens(NamedTuple):
    """The state of a bucket."""

    tokens: float
    """Fewer than none after a debt."""
    at: float
    """When that was right, in seconds."""

    def taken(self, debt: float, wanted: float, rate: tuple[float, float], now: float) -> tuple["Tokens", float]:
        """Return the state after a debt was paid, and how many of the wanted tokens were taken.

        Args:
            debt: what was spent beyond earlier slices.
            wanted: the tokens.
            rate: the tokens per second, and the most tokens.
            now: the time in seconds.
        """
        cap, size = rate
        at = self.at if self.at - now <= AHEAD_SECONDS_MAX else now
        level = min(size, self.tokens + max(0.0, now - at) * cap) - debt
        given = max(0.0, min(wanted, level))
        return Tokens(level - given, max(now, at)), given


class Ledger(Protocol):
    """The buckets of all accounts."""

    async def take(
        self, account: str, limit: str, debt: float, wanted: float, cap: float, size: float, now: float
    ) -> float:
        """Pay a debt, and take tokens; return how many.

        Args:
            account: the account.
            limit: which of its buckets.
            debt: as of `Tokens.taken`.
            wanted: likewise.
            cap: tokens per second.
            size: the most tokens.
            now: the time in seconds.

        Raises:
            EngineError: the ledger cannot be reached.
        """
        ...


class MemoryLedger:
    """The ledger of a server with workers: its primary has it, and forgets it when it ends."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, str], Tokens] = {}

    async def take(
        self, account: str, limit: str, debt: float, wanted: float, cap: float, size: float, now: float
    ) -> float:
        """See `Ledger`."""
        before = self._buckets.get((account, limit), Tokens(size, now))
        if len(self._buckets) >= ENTRIES_MAX:
            self._buckets.clear()
        self._buckets[account, limit], given = before.taken(debt, wanted, (cap, size), now)
        return given


LEDGER = Interface[Ledger]("ledger", {"take": Method([PLAIN] * 7)})
"""How workers call the ledger of their primary."""


class StoredLedger:
    """The ledger of a database, as one of its processes uses it: partition = account, row = limit.

    Args:
        engine: holds the rows.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def take(
        self, account: str, limit: str, debt: float, wanted: float, cap: float, size: float, now: float
    ) -> float:
        """See `Ledger`."""

        def decide(value: bytes | None) -> Decision[float]:
            before = (None if value is None else _decoded(value)) or Tokens(size, now)
            after, given = before.taken(debt, wanted, (cap, size), now)
            is_same = not debt and not given and after.at >= before.at  # It has only filled.
            return Decision({} if is_same else {limit: _TOKENS.pack(*after)}, given)

        return await self._engine.commit(ACCOUNT_QUOTAS, account, change_row(limit, decide))


def _decoded(value: bytes) -> Tokens | None:
    """Return the state of a row; None if it is damaged."""
    if len(value) != _TOKENS.size:
        return None
    found = Tokens(*_TOKENS.unpack(value))
    return found if all(map(isfinite, found)) else None


def _verify(_: Key, value: bytes) -> None:
    if _decoded(value) is None:
        raise ValueError("the row is no bucket")


QUOTAS_SPACE = Space(number=ACCOUNT_QUOTAS, owner="", title="the quotas of accounts", verify=_verify)
