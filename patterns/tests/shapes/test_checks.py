"""Damage of series and logs is planted and found; a repair loses no number, even with writers."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.data.tables import EntityProperty, TableClient

from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.failpoints import NoFailpoints
from lazulite_patterns.effects.sdk import stored
from lazulite_patterns.effects.tables import Batch, EntityKey
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.shapes import Series, Tail
from lazulite_patterns.shapes.protocols.series import SeriesProtocol
from lazulite_patterns.shapes.protocols.series_check import BEYOND, NO_NUMBER, NOT_COUNTED
from lazulite_patterns.shapes.protocols.tail_check import NO_ENTRY
from lazulite_patterns_simulation import Crash, FaultAt, every_fault

from .support import QUICK, driver, empty

KEY = EntityKey("jones", "2014-07-31")
MANY = Policy(first_wait_seconds=0.002, marks=16)


def test_whole_series_and_logs_have_no_findings(table_client: TableClient) -> None:
    Series(table_client, 24, int, shards=4).add_all(KEY, {0: 1, 23: 2})
    Tail(table_client).append("jones", {"N": 1})
    table_client.create_entity({"PartitionKey": "other", "RowKey": "x", "S": 1, "Sum": "text", "S001": 5, "Title": 2})
    assert list(audit(Series(table_client, 24, int, shards=4), Tail(table_client))) == []


def test_slots_that_are_no_numbers_and_rows_that_are_no_entries_are_found(table_client: TableClient) -> None:
    row = {
        "PartitionKey": "p",
        "RowKey": "a",
        "S0": "text",
        "S1": True,
        "S2": 1.5,
        "S3": EntityProperty(1, "Edm.Int64"),
    }
    table_client.create_entity({**row, "S9": 1})
    table_client.create_entity({"PartitionKey": "p", "RowKey": "2519999999999999999_1"})
    found = list(audit(Series(table_client, 5, int), Tail(table_client), repair=True, grace_seconds=-1))
    assert [(each.kind, each.key.row_key, each.repaired) for each in found] == [
        (NO_NUMBER, "a", False),
        (BEYOND, "a", False),
        (NO_ENTRY, "2519999999999999999_1", False),
    ]
    assert [each.detail for each in found[:2]] == ["S0, S1, S2", "S9"]
    assert [each.detail for each in audit(Series(table_client, 10, float))] == ["S0, S1"]


def test_numbers_of_a_series_that_got_shards_later_are_counted_again(table_client: TableClient) -> None:
    Series(table_client, 3, int).add_all(KEY, {0: 5, 2: 7})
    series = Series(table_client, 3, int, shards=4)
    assert series.get(KEY) is None, "reads of shards do not count the row"
    series.add(KEY, 0, 1)
    (young,) = audit(series, repair=True)
    assert (young.kind, young.repaired) == (NOT_COUNTED, False), "it waits for the grace"
    (found,) = audit(series, repair=True, grace_seconds=-1)
    assert (found.kind, found.repaired) == (NOT_COUNTED, True)
    assert series.get(KEY) == [6, 0, 7]
    assert list(audit(series)) == []


def test_no_add_is_lost_while_a_series_is_repaired(table_client: TableClient) -> None:
    old, series = Series(table_client, 2, int, policy=MANY), Series(table_client, 2, int, shards=2, policy=MANY)
    old.add(KEY, 0, 1)

    def work(number: int) -> None:
        if number % 6 == 0:
            list(audit(series, repair=True, grace_seconds=-1))
        else:
            (old if number % 2 else series).add(KEY, 1, 1)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(60)))
    list(audit(series, repair=True, grace_seconds=-1))
    assert series.get(KEY) == [1, 50]


@pytest.mark.parametrize("there", [False, True])
def test_every_fault_of_a_repair_counts_once(table_client: TableClient, there: bool) -> None:
    protocol: SeriesProtocol[int] = SeriesProtocol(table_client.table_name, 2, int, shards=2, policy=QUICK)

    def attempt(fault: FaultAt) -> None:
        empty(table_client)
        Series(table_client, 2, int).add(KEY, 0, 5)
        if there:
            Series(table_client, 2, int, shards=2).add(KEY, 1, 3)
        row = stored(table_client.get_entity(*KEY))
        try:
            driver(table_client, fault).run(protocol.absorb(row))
        except Crash:
            series = Series(table_client, 2, int, shards=2)
            series.add(KEY, 0, 0)  # Without a shard, the row may be a series without shards.
            list(audit(series, repair=True, grace_seconds=-1))
        assert driver(table_client, NoFailpoints()).run(protocol.get(KEY)) == [5, 3 if there else 0]

    assert sum(1 for _ in every_fault(attempt)) == 6 * 2


class NoDelete:
    """Failpoints: the transaction of a repair has its first operation only."""

    def before(self, effect: Effect[object]) -> None:
        if isinstance(effect, Batch):
            object.__setattr__(effect, "operations", effect.operations[:1])

    def after(self, effect: Effect[object]) -> None: ...


def test_a_repair_without_its_delete_would_count_twice(table_client: TableClient) -> None:
    protocol: SeriesProtocol[int] = SeriesProtocol(table_client.table_name, 2, int, shards=2, policy=QUICK)
    Series(table_client, 2, int).add(KEY, 0, 5)
    row = stored(table_client.get_entity(*KEY))
    for _ in range(2):
        driver(table_client, NoDelete()).run(protocol.absorb(row))
    assert driver(table_client, NoFailpoints()).run(protocol.get(KEY)) != [5, 0]


def test_a_series_without_shards_stays_beside_one_with_shards(table_client: TableClient) -> None:
    plain, busy = Series(table_client, 24, int), Series(table_client, 24, int, shards=8)
    plain.add(KEY, 9, 20)
    busy.add(EntityKey("everyone", "2014-07-31"), 9, 1)
    (found,) = audit(busy, repair=True, grace_seconds=-1)
    assert (found.kind, found.repaired, found.proposal) == (NOT_COUNTED, False, "")
    assert plain.get(KEY) is not None
