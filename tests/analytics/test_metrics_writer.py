"""The rounds of processes on one store: every request once, whatever fails, and rows for every interval."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lazulite.analytics import metrics_writer
from lazulite.analytics.interval_counts import all_rows
from lazulite.analytics.metrics import partition_of
from lazulite.records.spaces import FIRST_FREE_SPACE
from lazulite.service.properties import ServiceProperties
from tests.analytics.counted import HOUR, MINUTE, START, Counted, asking
from tests.analytics.store import Process, Store
from tests.table.client import values

ASKING = asking()
MINUTES, HOURS = "$MetricsMinutePrimaryTransactionsBlob", "$MetricsHourPrimaryTransactionsBlob"


async def rows(store: Store, table: str = MINUTES) -> list[dict[str, Any]]:
    """Return the rows of a table, as clients read it."""
    response = await store.client("GET", f"{table}()", headers={"accept": "application/json;odata=nometadata"})
    return values(response) if response.status == 200 else []


async def totals(store: Store, table: str = MINUTES) -> dict[tuple[str, str], int]:
    """Return the requests of each row that has some, by interval and RowKey."""
    found = {(row["PartitionKey"], row["RowKey"]): int(row["TotalRequests"]) for row in await rows(store, table)}
    return {key: total for key, total in found.items() if total}


async def begin(store: Store, *names: str, properties: ServiceProperties = ASKING) -> list[Process]:
    """Return processes that have made their first round at `START`."""
    await store.ask(properties)
    processes = [store.process(name) for name in names]
    for process in processes:
        await process.writer.round()
    return processes


async def test_rows_appear_once_their_interval_has_ended(store: Store) -> None:
    (process,) = await begin(store, "one")
    process.counter.take([Counted(), Counted("PutBlob", status="ClientOtherError", http_status=409)])
    await process.writer.round()
    assert await rows(store) == []
    store.now += MINUTE
    await process.writer.round()
    all_, *others = [(row["RowKey"], row["TotalRequests"]) for row in await rows(store)]
    assert [all_, *others] == [("system;All", "0"), ("user;All", "2"), ("user;GetBlob", "1"), ("user;PutBlob", "1")]
    assert await rows(store, HOURS) == []
    store.now = START + HOUR
    await process.writer.round()
    assert set((await totals(store, HOURS)).values()) == {2, 1}
    assert len({row["PartitionKey"] for row in await rows(store)}) == 60


async def test_rows_are_typed(store: Store) -> None:
    (process,) = await begin(store, "one")
    process.counter.take([Counted()])
    store.now += MINUTE
    await process.writer.round()
    path = f"{MINUTES}(PartitionKey='{partition_of(START)}',RowKey='user;All')"
    response = await store.client("GET", path, headers={"accept": "application/json;odata=fullmetadata"})
    row = json.loads(response.body)
    assert row["TotalIngress@odata.type"] == "Edm.Int64"
    assert (row["TotalIngress"], row["AverageE2ELatency"], row["Availability"]) == ("110", 3.0, 100.0)
    assert "AverageE2ELatency@odata.type" not in row


async def test_secondaries_have_tables_of_their_own(store: Store) -> None:
    (process,) = await begin(store, "one")
    process.counter.take([Counted(is_secondary=True)])
    store.now += MINUTE
    await process.writer.round()
    assert await totals(store) == {}
    assert (partition_of(START), "user;GetBlob") in await totals(store, MINUTES.replace("Primary", "Secondary"))


@pytest.mark.parametrize(
    ("properties", "tables"),
    [
        (asking(minute=False), {HOURS}),
        (asking(hour=False), {MINUTES}),
        (asking(minute=False, hour=False), set()),
    ],
)
async def test_tables_exist_only_if_they_are_asked_for(
    store: Store, properties: ServiceProperties, tables: set[str]
) -> None:
    (process,) = await begin(store, "one", properties=properties)
    process.counter.take([Counted(properties=asking())])
    await process.writer.round()
    kinds = {f"$Metrics{key.series.period}PrimaryTransactionsBlob" async for key, _ in all_rows(store.engine)}
    assert kinds == tables
    store.now += HOUR
    await process.writer.round()
    for table in (MINUTES, HOURS):
        assert bool(await rows(store, table)) is (table in tables)
    for service in ("Table", "Queue"):
        assert await rows(store, MINUTES.replace("Blob", service)) == []


async def test_operations_have_rows_only_if_they_are_asked_for(store: Store) -> None:
    (process,) = await begin(store, "one", properties=asking(apis=False))
    process.counter.take([Counted()])
    store.now += MINUTE
    await process.writer.round()
    assert await totals(store) == {(partition_of(START), "user;All"): 1}


async def test_an_account_that_is_gone_gets_nothing(store: Store) -> None:
    (process,) = await begin(store, "one")
    store.accounts.clear()
    process.counter.take([Counted()])
    store.now += MINUTE
    await process.writer.round()
    assert await rows(store) == []
    assert await interval_rows(store) == []


async def interval_rows(store: Store) -> list[tuple[str, int]]:
    """Return the intervals that have counts in the store, and the requests that are published of each."""
    return [(key.partition, counts.published) async for key, counts in all_rows(store.engine)]


async def test_processes_add_up(store: Store) -> None:
    processes = await begin(store, "one", "two", "three")
    for count, process in enumerate(processes, 1):
        process.counter.take([Counted()] * count)
    for process in processes[:2]:
        await process.writer.round()
    store.now += MINUTE
    for process in reversed(processes):
        await process.writer.round()
    assert set((await totals(store)).values()) == {6}


async def test_a_late_request_is_added_to_its_interval(store: Store) -> None:
    (process,) = await begin(store, "one")
    process.counter.take([Counted()])
    store.now += MINUTE
    await process.writer.round()
    process.counter.take([Counted(ended=store.now + 1)])
    store.now += MINUTE
    await process.writer.round()
    assert (await totals(store))[partition_of(START), "user;All"] == 2


@pytest.mark.parametrize("rounds_before", [0, 1])
async def test_an_older_total_does_not_replace_a_newer_one(store: Store, rounds_before: int) -> None:
    """Two processes publish at once: the one that read first writes last, a new row or a row of before."""
    one, two = await begin(store, "one", "two")
    one.counter.take([Counted()])
    await one.writer.round()
    store.now += MINUTE
    for _ in range(rounds_before):
        await one.writer.round()
    one.counter.take([Counted()])
    two.counter.take([Counted()])
    overtaken: list[int] = []

    async def overtake(space: int) -> None:
        if space >= FIRST_FREE_SPACE and not overtaken:  # It has read the total, and the row of the table.
            overtaken.append(space)
            await two.writer.round()

    one.engine.before_commit = overtake
    await one.writer.round()
    assert overtaken
    assert set((await totals(store)).values()) == {3}
    assert one.counts.failed_rounds == 0


async def test_what_a_killed_process_has_written_is_published_by_another(store: Store) -> None:
    killed, other = await begin(store, "killed", "other")
    killed.counter.take([Counted()])
    await killed.writer.round()
    store.now += MINUTE
    await other.writer.round()
    assert set((await totals(store)).values()) == {1}


async def test_what_a_process_has_written_is_published_by_its_successor(store: Store) -> None:
    (process,) = await begin(store, "one")
    process.counter.take([Counted()])
    await process.writer.flush()
    store.now += 2 * HOUR
    successor = store.process("two")
    await successor.writer.round()
    assert await totals(store) == {}
    await successor.upkeep.maintain()
    assert set((await totals(store)).values()) == set((await totals(store, HOURS)).values()) == {1}


async def test_rows_that_a_user_has_deleted_do_not_come_back(store: Store) -> None:
    (process,) = await begin(store, "one")
    process.counter.take([Counted()])
    store.now += MINUTE
    await process.writer.round()
    for row in await rows(store):
        path = f"{MINUTES}(PartitionKey='{row['PartitionKey']}',RowKey='{row['RowKey']}')"
        assert (await store.client("DELETE", path, headers={"if-match": "*"})).status == 204
    await process.writer.round()
    await process.upkeep.maintain()
    assert await rows(store) == []


async def test_counts_are_removed_some_time_after_their_interval(store: Store) -> None:
    (process,) = await begin(store, "one")
    process.counter.take([Counted()])
    await process.writer.round()
    assert len(await interval_rows(store)) == 2
    store.now += 5 * HOUR
    await process.writer.round()
    await process.upkeep.maintain()
    assert await interval_rows(store) == []
    assert set((await totals(store)).values()) == {1}


async def test_a_round_makes_up_for_those_that_failed(store: Store) -> None:
    (process,) = await begin(store, "one")
    process.counter.take([Counted()])
    engine = process.engine
    engine.failing = dict.fromkeys(range(engine.commits + 1, engine.commits + 6), "before")
    for _ in range(5):
        store.now += MINUTE
        await process.writer.round()
    assert process.counts.failed_rounds == 5
    assert await rows(store) == []
    await process.writer.round()
    assert len({row["PartitionKey"] for row in await rows(store)}) == 5
    assert set((await totals(store)).values()) == {1}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rounds=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 90)), max_size=12),
    failing=st.dictionaries(st.integers(1, 60), st.sampled_from(["before", "after"]), max_size=12),
)
async def test_nothing_is_lost_or_counted_twice_whatever_fails(
    rounds: list[tuple[int, int, int]], failing: dict[int, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes count and write in any order, and their commits fail before or after they were made."""
    monkeypatch.setattr(metrics_writer, "CAUGHT_UP_MAX", 2)  # Empty intervals cost time.
    store = Store()
    processes = await begin(store, "one", "two")
    for process in processes:
        process.engine.failing = {process.engine.commits + number: how for number, how in failing.items()}
    count = 0
    for index, requests, seconds in rounds:
        process = processes[index]
        process.counter.take([Counted(started=store.now, ended=store.now)] * requests)
        count += requests
        store.now += seconds * MINUTE // 60
        await process.writer.round()
    store.now = START + 2 * HOUR
    for process in processes:
        process.engine.failing = {}
        await process.writer.round()
    for table in (MINUTES, HOURS):
        for row in ("user;All", "user;GetBlob"):
            found = [total for (_, key), total in (await totals(store, table)).items() if key == row]
            assert sum(found) == count
    await store.engine.close()


async def test_a_clock_that_jumps_does_not_make_rows_for_years(store: Store) -> None:
    (process,) = await begin(store, "one")
    store.now += 1000 * HOUR
    await process.writer.round()
    assert 0 < len({row["PartitionKey"] for row in await rows(store)}) <= 60
    store.now = START
    await process.writer.round()
    assert process.counts.failed_rounds == 0
