"""Loads on the service: faults, a kill, limits of bodies, and asynchronous programs."""

import io
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from rich.console import Console

from lazulite_patterns import FileCheckpoint
from lazulite_patterns.aio import bulk as async_bulk
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.bulk import Failure, Limits, Progress, State, delete, load
from lazulite_patterns.bulk.bar import bar
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.table.table import Table

FAST = Policy(first_wait_seconds=0.001)


def source(count: int, partitions: int) -> list[Bag]:
    return [
        Bag(PartitionKey=f"p{number % partitions}", RowKey=f"{number // partitions:04}", N=number)
        for number in range(count)
    ]


class Faults:
    """Failpoints: one request in twenty fails, before or after; and the process may end at one of them."""

    def __init__(self, seed: int, crash_at: int | None = None) -> None:
        self._random, self._lock = Random(seed), threading.Lock()
        self.crash_at, self.count = crash_at, 0

    def before(self, effect: Effect[object]) -> None:
        with self._lock:
            self.count += 1
            drawn = self._random.random()
            crashed = self.crash_at is not None and self.count >= self.crash_at
        if crashed:
            raise Crash
        if drawn < 0.025:
            raise ResultUnknown("503", retry_after_seconds=0)

    def after(self, effect: Effect[object]) -> None:
        with self._lock:
            drawn = self._random.random()
        if drawn < 0.025:
            raise ResultUnknown("lost")


@pytest.mark.parametrize("crash_at", [1, 9, 20])
def test_a_load_with_faults_is_killed_and_resumed_without_loss(
    table_client: TableClient, tmp_path: Path, crash_at: int
) -> None:
    rows = source(2_000, 40)
    limits = Limits(workers=4, buffer_entities=300)
    checkpoint = FileCheckpoint(tmp_path / "load.json")
    table = Table(table_client, Bag, policy=FAST, runtime=Runtime(failpoints=Faults(crash_at, crash_at)))
    with pytest.raises(Crash):
        load(table, rows, limits=limits, checkpoint=checkpoint)
    seen: list[Progress] = []
    table = Table(table_client, Bag, policy=FAST, runtime=Runtime(failpoints=Faults(crash_at + 1)))
    report = load(table, iter(rows), limits=limits, checkpoint=checkpoint, progress=seen.append)
    assert report.failures == ()
    assert sorted(each["N"] for each in table_client.list_entities()) == list(range(2_000))
    assert State.of(checkpoint.load()) == State(2_000)
    assert seen[-1] == report.progress
    gone = delete(table, (EntityKey(each["PartitionKey"], each["RowKey"]) for each in table_client.list_entities()))
    assert (gone.progress.rows_done, list(table_client.list_entities())) == (2_000, [])


def test_bodies_are_of_4_mib_at_most(table_client: TableClient) -> None:
    large = {f"B{number}": bytes(64_000) for number in range(14)}
    rows = [Bag(PartitionKey="p", RowKey=str(number), **large) for number in range(7)]
    report = load(Table(table_client, Bag), rows)
    assert report.failures == ()
    assert report.progress.transactions == 3
    assert len(list(table_client.list_entities(select="RowKey"))) == 7


def test_the_service_names_the_row_that_it_rejects(table_client: TableClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "check_value", lambda _: None)  # As for a limit that the library does not know.
    times = [datetime(year, 1, 1, tzinfo=UTC) for year in (2001, 1600, 2002, 1500, 2003)]
    rows = [Bag(PartitionKey="p", RowKey=key, Time=time) for key, time in zip("abcde", times, strict=True)]
    report = load(Table(table_client, Bag), rows, kind="insert")
    assert [(each.number, each.key) for each in report.failures] == [(1, ("p", "b")), (3, ("p", "d"))]
    assert [each["RowKey"] for each in table_client.list_entities()] == ["a", "c", "e"]


def test_an_insert_of_rows_that_are_there(table_client: TableClient) -> None:
    table = Table(table_client, Bag)
    rows = source(30, 2)
    load(table, rows[:20])
    table_client.upsert_entity({**rows[3], "N": -3})
    report = load(table, rows, kind="insert")
    assert [each.number for each in report.failures] == [3]
    assert report.progress.rows_done == 29
    assert sorted(each["N"] for each in table_client.list_entities()) == [-3, 0, 1, 2, *range(4, 30)]


async def test_an_asynchronous_load_and_delete(
    connection_string: str, table_client: TableClient, tmp_path: Path
) -> None:
    rows = source(500, 7)

    async def stream() -> AsyncIterator[Bag]:
        for each in rows:
            yield each

    checkpoint = FileCheckpoint(tmp_path / "load.json")
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        table = AsyncTable(client, Bag, policy=FAST, runtime=Runtime(failpoints=Faults(1, crash_at=4)))
        with pytest.raises(Crash):
            await async_bulk.load(table, stream(), limits=Limits(buffer_entities=100), checkpoint=checkpoint)
        table = AsyncTable(client, Bag, policy=FAST, runtime=Runtime(failpoints=Faults(2)))
        report = await async_bulk.load(table, stream(), checkpoint=checkpoint)
        assert report.failures == ()
        assert sorted(each["N"] for each in table_client.list_entities()) == list(range(500))
        again = await async_bulk.load(table, rows, checkpoint=checkpoint)
        assert (again.progress.transactions, again.progress.rows_done) == (0, 500)
        await async_bulk.delete(table, [EntityKey(each["PartitionKey"], each["RowKey"]) for each in rows])  # type: ignore[arg-type]
        assert list(table_client.list_entities()) == []


def test_a_checkpoint_is_replaced_as_a_whole(tmp_path: Path) -> None:
    checkpoint = FileCheckpoint(tmp_path / "load.json")
    assert State.of(checkpoint.load()) == State()
    state = State(7, (Failure(3, EntityKey("p", "r"), "bad"), Failure(5, None, "worse")))
    checkpoint.save(state.text())
    assert State.of(checkpoint.load()) == state
    assert [each.name for each in tmp_path.iterdir()] == ["load.json"]


def test_a_bar_shows_progress(table_client: TableClient) -> None:
    output = io.StringIO()
    with bar(50, "people", Console(file=output, width=100)) as progress:
        load(Table(table_client, Bag), source(50, 2), progress=progress)
    assert "people" in output.getvalue()
    assert "50/50" in output.getvalue()
