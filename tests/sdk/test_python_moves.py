"""What reaches a program while a range moves for ten seconds: the official SDKs with their defaults.

The server's clock is the test's, and the SDKs sleep in it. So the times are those of real SDKs, and take no time. What
is here stands in docs/operations/targets.md.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.core.pipeline.transport import AioHttpTransport, RequestsTransport
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.blob import BlobClient, ContainerClient
from azure.storage.queue import QueueClient
from lazulite_patterns import Column, Table, entity, partition, row

from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.partitions.load import RangeLoad
from lazulite.partitions.ranges import Range, RangeMap, TableKey
from lazulite.partitions.stored_maps import StoredMaps
from lazulite.protocol.clock import system_clock
from lazulite.settings.config import store_path
from lazulite.table.catalog import Catalog
from lazulite.testing import Storage
from lazulite.testing import server as storage_server

MOVE_SECONDS = 10
KEYS = {"PartitionKey": "z", "RowKey": "r"}
"""In the range that moves; it begins at m."""


class Time:
    """The clock of a server and of the SDKs that it serves."""

    def __init__(self) -> None:
        self.begun = self.now = datetime.now(UTC)
        self.requests: list[float] = []
        """When requests were sent, in seconds since the begin."""
        self.slept: Callable[[float], None] = lambda _: None
        """Called with the seconds since the begin, after each sleep."""

    @property
    def seconds(self) -> float:
        return (self.now - self.begun).total_seconds()

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.slept(self.seconds)


class Transport(RequestsTransport):  # type: ignore[misc]  # It has no types.
    """Sends requests, and sleeps in the clock of the test."""

    def __init__(self, time: Time) -> None:
        super().__init__()
        self._time = time

    def send(self, request: Any, **options: Any) -> Any:
        self._time.requests.append(self._time.seconds)
        return super().send(request, **options)

    def sleep(self, duration: float) -> None:
        self._time.sleep(duration)


class AsyncTransport(AioHttpTransport):  # type: ignore[misc]  # It has no types.
    """The same for an event loop."""

    def __init__(self, time: Time) -> None:
        super().__init__()
        self._time = time

    async def send(self, request: Any, **options: Any) -> Any:
        self._time.requests.append(self._time.seconds)
        return await super().send(request, **options)

    async def sleep(self, duration: float) -> None:
        self._time.sleep(duration)


async def begin_move(location: Path, begun: datetime) -> None:
    """Have a range of a table at a location move from a moment on."""
    engine = RocksEngine.open(store_path(location), system_clock)
    try:
        catalog = Catalog(engine)
        (table,) = [each async for each in catalog.all()]
        key = TableKey("devstoreaccount1", "orders", table.space)
        start = begun.timestamp()
        moving = RangeMap((Range("", 0, start), Range("m", 1, start, start + MOVE_SECONDS)))
        loads = {key: {"": RangeLoad()}}
        assert await StoredMaps(engine, catalog.has, None, pytest.fail).take_turn(
            {key: moving}, loads, start, 15, lambda maps, _, __: maps
        )
    finally:
        await engine.close()


class RealTime(Time):
    """The clock of the machine; a move that began long ago has a second left."""

    def __init__(self) -> None:
        super().__init__()
        self.begun -= timedelta(seconds=MOVE_SECONDS - 1)

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)

    @now.setter
    def now(self, _: datetime) -> None:
        """Nothing sets it."""


@contextmanager
def moving(location: Path, timeout_share: float, time: Time | None = None) -> Iterator[tuple[Storage, Time]]:
    """Yield a server one of whose ranges begins to move, and its clock."""
    time = time or Time()
    file = location / "targets.toml"
    file.write_text(f"timeout_share = {timeout_share}\n[balancing]\nmove_seconds = {MOVE_SECONDS}\n")
    with storage_server(location / "data", clock=lambda: time.now) as storage, client(TableClient, storage) as table:
        table.create_table()
    asyncio.run(begin_move(location / "data", time.begun))
    with storage_server(location / "data", clock=lambda: time.now, targets=str(file)) as storage:
        yield storage, time


def client(kind: Callable[..., Any], storage: Storage, time: Time | None = None, **options: Any) -> Any:
    made: Any = kind
    transport = {} if time is None else {"transport": Transport(time)}
    return made.from_connection_string(storage.connection_string, "Orders", **transport, **options)


class Outcome(NamedTuple):
    """What a program sees of one operation."""

    status: int
    """Of an error; 0: success."""
    requests: int
    seconds: float


def outcome(time: Time, operation: Callable[[], object]) -> Outcome:
    try:
        operation()
    except HttpResponseError as error:
        return Outcome(error.status_code or 0, len(time.requests), round(time.seconds, 1))
    return Outcome(0, len(time.requests), round(time.seconds, 1))


BUSY = Outcome(503, 4, 4.8)
"""The default of azure-data-tables gives up before a move ends."""


def test_tables_with_defaults(tmp_path: Path) -> None:
    with moving(tmp_path, 0) as (storage, time), client(TableClient, storage, time) as table:
        assert outcome(time, lambda: table.create_entity(KEYS)) == BUSY
        time.sleep(MOVE_SECONDS)
        assert list(table.list_entities()) == []


def test_tables_with_defaults_in_an_event_loop(tmp_path: Path) -> None:
    with moving(tmp_path, 0) as (storage, time):

        async def create() -> None:
            table = AsyncTableClient.from_connection_string(
                storage.connection_string, "Orders", transport=AsyncTransport(time)
            )
            async with table:
                await table.create_entity(KEYS)

        assert outcome(time, lambda: asyncio.run(create())) == BUSY


def test_tables_with_more_retries_get_through(tmp_path: Path) -> None:
    with (
        moving(tmp_path, 0) as (storage, time),
        client(TableClient, storage, time, retry_status=6) as table,
    ):
        found = outcome(time, lambda: table.create_entity(KEYS))
        assert (found.status, found.requests) == (0, 5)
        assert MOVE_SECONDS <= found.seconds <= 12


def test_a_time_out_may_have_been_made(tmp_path: Path) -> None:
    """An SDK repeats an insert that was made, and the program gets 409. The entity is there."""
    with (
        moving(tmp_path, 1) as (storage, time),
        client(TableClient, storage, time, retry_status=6) as table,
    ):
        conflicts = 0
        for number in range(8):
            time.now = time.begun
            try:
                table.create_entity({**KEYS, "RowKey": str(number)})
            except ResourceExistsError:
                conflicts += 1
        assert conflicts > 0
        assert {each["RowKey"] for each in table.list_entities()} == set(map(str, range(8)))


def test_no_acknowledged_row_is_lost(tmp_path: Path) -> None:
    """A program writes through a whole move, in all ranges, and some of its writes time out."""
    with (
        moving(tmp_path, 0.5) as (storage, time),
        client(TableClient, storage, time) as table,
    ):
        acknowledged, failed = set(), {}
        for number in range(60):
            key = ("a" if number % 3 else "z", f"{number:02}")
            try:
                table.upsert_entity({"PartitionKey": key[0], "RowKey": key[1]})
                acknowledged.add(key)
            except HttpResponseError as error:
                failed[key] = error.status_code
            time.sleep(0.2)
        kept = {(each["PartitionKey"], each["RowKey"]) for each in table.list_entities()}
        assert acknowledged <= kept
        assert kept - acknowledged <= failed.keys(), "only what may have been made"
        assert set(failed.values()) <= {503, 500}
        assert {key[0] for key in failed} == {"z"}
        assert time.seconds > MOVE_SECONDS
        assert ("z", "57") in acknowledged


@entity
class Order:
    customer: Column[str] = partition()
    number: Column[int] = row(width=4)


def test_the_pattern_library_gets_through(tmp_path: Path) -> None:
    """It repeats for as long as it takes, also what may have been made. This takes the last second of a move."""
    with (
        moving(tmp_path, 1, RealTime()) as (storage, _),
        Table.open(storage.connection_string, Order, table="Orders") as orders,
    ):
        for number in range(3):
            orders.insert(Order("z", number))
        with orders.transaction("z") as transaction:
            for number in range(3, 6):
                transaction.insert(Order("z", number))
        assert [each.number for each in orders.where(Order.customer == "z")] == list(range(6))


@pytest.mark.parametrize("kind", [QueueClient, BlobClient])
def test_queues_and_blobs_wait_longer_than_a_move(kind: Any) -> None:
    """They have no ranges, so this is a server that is busy for as long as a move takes."""
    time = Time()
    with storage_server(clock=lambda: time.now) as storage:
        made: Any
        given = {"transport": Transport(time)}
        if kind is QueueClient:
            made = kind.from_connection_string(storage.connection_string, "orders", **given)
            made.create_queue()
        else:
            with ContainerClient.from_connection_string(storage.connection_string, "orders") as container:
                container.create_container()
            made = kind.from_connection_string(storage.connection_string, "orders", "b", **given)
        with made:
            time.requests.clear()
            storage.faults.add('[[rule]]\nname = "busy"\nerror = "ServerBusy"\n')
            time.slept = lambda seconds: storage.faults.clear() if seconds >= MOVE_SECONDS else None
            write = made.send_message if kind is QueueClient else made.upload_blob
            found = outcome(time, lambda: write("x"))
        assert (found.status, found.requests) == (0, 2)
        assert 15 <= found.seconds <= 21.1
