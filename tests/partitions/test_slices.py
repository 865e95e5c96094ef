"""Slices of a shared quota: several processes pass what one would, but for a slice each."""

import asyncio
from random import Random

import pytest

from lazulite.engine.contract import EngineUnavailableError
from lazulite.partitions.gate import Limit, ProcessQuota
from lazulite.partitions.ledger import Ledger, MemoryLedger, StoredLedger
from lazulite.partitions.slices import PAUSE_SECONDS, SLICE_SECONDS, SharedQuota
from lazulite.protocol.clock import system_clock
from tests.fuzz.memory import MemoryEngine

CAP = 1_000.0
SLICE = CAP * SLICE_SECONDS


class CountingLedger(MemoryLedger):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.is_away = False

    async def take(
        self, account: str, limit: str, debt: float, wanted: float, cap: float, size: float, now: float
    ) -> float:
        self.calls += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise EngineUnavailableError("away")
        return await super().take(account, limit, debt, wanted, cap, size, now)


async def passes(quota: SharedQuota | ProcessQuota, cost: float, now: float, account: str = "acct") -> bool:
    """Decide about a request, as the gate does."""
    if not quota.bucket(account, Limit.ACCOUNT, CAP, now).has(cost, now):
        await quota.refill(account, Limit.ACCOUNT, cost, CAP, now)
    bucket = quota.bucket(account, Limit.ACCOUNT, CAP, now)
    if not bucket.has(cost, now):
        return False
    bucket.tokens -= cost
    return True


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("stored", [False, True])
async def test_processes_share_one_quota_within_a_slice_each(seed: int, stored: bool) -> None:
    """Four processes of unequal load, for ten seconds, asked for three times the quota."""
    random = Random(seed)
    ledger: Ledger = StoredLedger(MemoryEngine(system_clock)) if stored else MemoryLedger()
    quotas = [SharedQuota(ledger, 1) for _ in range(4)]
    shares = [random.random() for _ in quotas]
    now, passed, log = 0.0, 0.0, list[tuple[float, float]]()
    while now < 10:
        now += random.expovariate(150)
        cost = random.choice([1, 1, 40])
        (quota,) = random.choices(quotas, shares)
        if await passes(quota, cost, now):
            passed += cost
        log.append((now, passed))
    error = len(quotas) * (SLICE + 40)
    assert abs(passed - CAP * (10 + 1)) <= error + CAP * PAUSE_SECONDS
    behind = 0
    for end, total in log:  # In no window of two seconds more than the quota, the burst and the error.
        while log[behind][0] < end - 2:
            behind += 1
        assert total - log[behind][1] <= CAP * (2 + 1) + error


async def test_many_requests_at_once_ask_once_for_a_slice() -> None:
    ledger = CountingLedger()
    quota = SharedQuota(ledger, 1)
    found = await asyncio.gather(*(passes(quota, 10, 0) for _ in range(95)))
    assert found == [True] * 95
    assert ledger.calls == 10
    found = await asyncio.gather(*(passes(quota, 10, 0.001) for _ in range(100)))
    assert sum(found) == 5
    assert ledger.calls == 11


async def test_an_empty_ledger_is_asked_again_after_a_pause() -> None:
    ledger = CountingLedger()
    quota = SharedQuota(ledger, 1)
    while await passes(quota, 50, 0):
        pass
    calls = ledger.calls
    for number in range(100):
        assert not await passes(quota, 50, number / 100 * PAUSE_SECONDS)
    assert ledger.calls == calls
    assert await passes(quota, 50, PAUSE_SECONDS + 0.001)


async def test_debts_are_paid_before_anything_passes() -> None:
    ledger = CountingLedger()
    one, other = SharedQuota(ledger, 1), SharedQuota(ledger, 1)
    assert await passes(one, 1, 0)
    one.bucket("acct", Limit.ACCOUNT, CAP, 0).tokens -= 3 * CAP  # A scan.
    assert not await passes(one, 1, 0.2)
    assert not await passes(other, 1, 1)  # The debt is the account's.
    assert await passes(other, 1, 3)
    assert await passes(one, 1, 3)


async def test_a_batch_that_is_larger_than_a_slice_needs_a_full_one() -> None:
    quota = SharedQuota(MemoryLedger(), 1)
    passed = [now / 100 for now in range(300) if await passes(quota, 3 * SLICE, now / 100)]
    assert 9 <= len(passed) <= 4 * CAP / (3 * SLICE)


async def test_nothing_passes_without_the_ledger_and_no_debt_is_lost() -> None:
    ledger = CountingLedger()
    quota = SharedQuota(ledger, 1)
    quota.bucket("acct", Limit.ACCOUNT, CAP, 0).tokens -= 2 * CAP
    ledger.is_away = True
    assert not await passes(quota, 1, 0)
    ledger.is_away = False
    assert not await passes(quota, 1, 0.9)
    assert await passes(quota, 1, 2)


async def test_a_request_that_is_given_up_leaves_the_slice_to_the_others() -> None:
    quota = SharedQuota(CountingLedger(), 1)
    given_up, other = (asyncio.ensure_future(passes(quota, 1, 0)) for _ in range(2))
    await asyncio.sleep(0)
    given_up.cancel()
    assert await other


async def test_accounts_are_apart_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazulite.partitions.slices.ENTRIES_MAX", 10)
    quota = SharedQuota(MemoryLedger(), 1)
    for number in range(50):
        assert await passes(quota, CAP, 0, str(number))
        assert len(quota._slices) <= 10


async def test_a_new_cap_makes_slices_of_another_size() -> None:
    quota = SharedQuota(MemoryLedger(), 1)
    await passes(quota, 1, 0)
    assert quota.bucket("acct", Limit.ACCOUNT, 10, 0).level(0.1) == 1
