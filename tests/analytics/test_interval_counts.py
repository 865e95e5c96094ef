"""The rows in which processes add up what they count."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.analytics import interval_counts
from lazulite.analytics.interval_counts import METRIC_COUNTS_SPACE, all_rows, note_published, put, read, take_upkeep
from lazulite.analytics.metrics import COUNTS, IntervalKey, Series, requests_in
from lazulite.engine.contract import KeyRange
from tests.analytics.counted import ACCOUNT, HOUR, MINUTE, START
from tests.analytics.store import Store

KEY = IntervalKey(Series(ACCOUNT, "table", "Minute", is_secondary=True), START)


def counts(requests: int) -> list[int]:
    return [requests] + [0] * (COUNTS - 1)


async def test_parts_are_replaced_and_added(store: Store) -> None:
    assert requests_in((await read(store.engine, KEY)).total) == 0
    await put(store.engine, KEY, "one", {"GetBlob": counts(1)})
    await put(store.engine, KEY, "two", {"GetBlob": counts(10), "PutBlob": counts(100)})
    for _ in range(2):
        found = await put(store.engine, KEY, "one", {"GetBlob": counts(2)})
    assert {name: each[0] for name, each in found.total.items()} == {"GetBlob": 12, "PutBlob": 100}
    assert await read(store.engine, KEY) == found


async def test_what_is_published_only_grows(store: Store) -> None:
    await note_published(store.engine, KEY, 5)
    assert [each async for each in all_rows(store.engine)] == []
    await put(store.engine, KEY, "one", {"GetBlob": counts(7)})
    await note_published(store.engine, KEY, 5)
    await note_published(store.engine, KEY, 3)
    assert (await read(store.engine, KEY)).published == 5
    assert not (await read(store.engine, KEY)).is_published
    await note_published(store.engine, KEY, 7)
    assert (await read(store.engine, KEY)).is_published


async def test_all_rows_come_page_by_page(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interval_counts, "_PAGE", 3)
    keys = [
        IntervalKey(Series(account, "blob", "Hour", is_secondary=False), START + hour * HOUR)
        for account in ("a", "b")
        for hour in range(4)
    ]
    for key in keys:
        await put(store.engine, key, "one", {"GetBlob": counts(1)})
    assert await take_upkeep(store.engine, "one", START, START + HOUR)
    assert [key async for key, _ in all_rows(store.engine)] == keys


async def test_one_process_does_the_upkeep_until_its_time_ends(store: Store) -> None:
    async def takes(process: str, now: int) -> bool:
        return await take_upkeep(store.engine, process, now, now + HOUR)

    assert await takes("one", START)
    assert not await takes("two", START + 1)
    assert await takes("one", START + MINUTE)
    assert not await takes("two", START + HOUR)
    assert await takes("two", START + HOUR + MINUTE)
    assert await takes("one", START - 100 * HOUR)  # The time of the other one was wrong, or is now.


async def test_the_rows_can_be_verified(store: Store) -> None:
    await put(store.engine, KEY, "one", {"GetBlob": counts(1)})
    await take_upkeep(store.engine, "one", START, START + HOUR)
    verify = METRIC_COUNTS_SPACE.verify
    assert verify is not None
    found = 0
    async for part in store.engine.scan(METRIC_COUNTS_SPACE.number, [KeyRange(("", ""), None)]):
        for index, value in enumerate(part.values):
            verify(part.key(index), value)
            found += 1
    assert found == 2


@given(
    row=st.sampled_from(["", "blob;Day;Primary;20241004T0000", "blob;Hour;Third;20241004T0000", "blob;Hour;Primary;x"]),
    value=st.sampled_from([b"", b"{}", b"x", json.dumps({"parts": {"p": {"o": [1]}}}).encode()]),
)
def test_damaged_rows_are_found(row: str, value: bytes) -> None:
    verify = METRIC_COUNTS_SPACE.verify
    assert verify is not None
    good = "blob;Hour;Primary;20241004T0000"
    with pytest.raises((ValueError, KeyError)):
        verify((ACCOUNT, row), b'{"parts":{}}')
    with pytest.raises((ValueError, KeyError)):
        verify((ACCOUNT, good), value)
