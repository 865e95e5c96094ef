"""The ledger of accounts: what it pays out in any time, whatever is asked by whomever."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.commit import put_rows
from lazulite.engine.contract import Engine
from lazulite.partitions.ledger import AHEAD_SECONDS_MAX, QUOTAS_SPACE, Ledger, MemoryLedger, StoredLedger, Tokens
from lazulite.records.spaces import ACCOUNT_QUOTAS

CALLS = st.lists(st.tuples(st.floats(-0.5, 2), st.floats(0, 300), st.floats(0, 300)), max_size=30)


@given(CALLS)
def test_no_time_pays_out_more_than_cap_and_burst(calls: list[tuple[float, float, float]]) -> None:
    """Between any two calls; clocks may be half a second behind each other."""
    cap, size = 100.0, 150.0
    bucket, now = Tokens(size, 0), 0.0
    paid: list[tuple[float, float]] = []
    for step, debt, wanted in calls:
        now += max(0, step)
        bucket, given_tokens = bucket.taken(debt, wanted, (cap, size), now + min(0, step))
        assert 0 <= given_tokens <= wanted
        assert bucket.tokens <= size
        paid.append((now, given_tokens + debt))
    for first, (begun, _) in enumerate(paid):
        spent = sum(tokens for _, tokens in paid[first:])
        assert spent + bucket.tokens <= size + cap * (now - begun + 0.5) + 1e-6


@pytest.mark.parametrize("make", [lambda _: MemoryLedger(), StoredLedger])
async def test_a_bucket_empties_and_fills(engine: Engine, make: type[StoredLedger]) -> None:
    ledger: Ledger = make(engine)

    async def take(now: float, wanted: float, debt: float = 0, account: str = "acct", limit: str = "account") -> float:
        return await ledger.take(account, limit, debt, wanted, 100, 150, now)

    assert [await take(10, 100), await take(10, 100), await take(10, 100)] == [100, 50, 0]
    assert await take(10.25, 100) == 25
    assert await take(10, 100) == 0  # Another clock is behind.
    assert await take(10.5, 10) == 10
    assert await take(10, 10) == 10  # It takes what is there, and nothing away.
    assert await take(20, 10, debt=240) == 0
    assert await take(21, 20) == pytest.approx(10)
    assert await take(21, 20, account="other") == await take(21, 20, limit="ingress") == 20
    assert await take(21 - 2 * AHEAD_SECONDS_MAX, 10) == 0  # The clock was set back, and it goes on from there.
    assert await take(22 - 2 * AHEAD_SECONDS_MAX, 200) == 100


@pytest.mark.parametrize(
    "value", [b"", b"x", b"x" * 17, struct.pack(">dd", math.nan, 0), struct.pack(">dd", 0, math.inf)]
)
async def test_a_damaged_bucket_is_full(memory: Engine, value: bytes) -> None:
    await memory.commit(ACCOUNT_QUOTAS, "acct", put_rows({"account": value}))
    assert await StoredLedger(memory).take("acct", "account", 0, 200, 100, 150, 10) == 150
    assert QUOTAS_SPACE.verify is not None
    with pytest.raises(ValueError, match="no bucket"):
        QUOTAS_SPACE.verify(("acct", "account"), value)
    QUOTAS_SPACE.verify(("acct", "account"), struct.pack(">dd", -1, 2))


async def test_the_buckets_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazulite.partitions.ledger.ENTRIES_MAX", 10)
    ledger = MemoryLedger()
    for number in range(100):
        await ledger.take(str(number), "account", 0, 1, 1, 1, 0)
        assert len(ledger._buckets) <= 10
