"""What the service would reject, the library rejects before it sends a request. The message names what is wrong."""

import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from azure.data.tables import TableClient, TableServiceClient
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from lazulite_patterns import Bag, Column, column, columns, entity, partition, row
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.encryption import Cipher, EncryptedTable, KeyRing
from lazulite_patterns.leases import Lease
from lazulite_patterns.sas import user_sas
from lazulite_patterns.shapes import BlobLog, Large, Periods
from lazulite_patterns.streams import Event, Stream
from lazulite_patterns.table.table import Table
from lazulite_patterns.transactions import Saga, Step
from lazulite_patterns.transactions.tasks import Tasks

KEY = EntityKey("p", "r")
BAD, LONG = EntityKey("a/b", "r"), EntityKey("p", "r" * 1025)
KEYS = KeyRing({"2025": secrets.token_bytes(32)}, current="2025")
NAN = float("nan")
LATER = datetime(2099, 1, 1, tzinfo=UTC)


@entity
class Person:
    team: Column[str] = partition()
    name: Column[str] = row()
    note: Column[str] = column(default="")
    weight: Column[float] = column(default=0)


@entity
class Open:
    team: Column[str] = partition()
    name: Column[str] = row()
    more: Column[dict[str, object]] = column(form="extra")


class NoRequests:
    """Failpoints: nothing is sent."""

    def before(self, effect: Effect[object]) -> None:
        assert type(effect).__name__ in {"NewId", "Now", "RandomNumber", "Gather"}

    def after(self, effect: Effect[object]) -> None: ...


class Clients(NamedTuple):
    """Clients of the service, and what lets no request pass."""

    table: TableClient
    service: TableServiceClient
    queue: QueueClient
    container: ContainerClient
    runtime: Runtime

    def people(self) -> Table[Person]:
        return Table(self.table, Person, runtime=self.runtime)

    def stream(self, name: str = "p") -> Stream[Any]:
        return Stream(self.table, name, runtime=self.runtime)

    def lease(self, key: EntityKey = KEY, **arguments: Any) -> Lease[Any]:
        return Lease(self.table, key, runtime=self.runtime, **arguments)

    def encrypted(self, kind: type, *names: str) -> object:
        return EncryptedTable(self.table, kind, cipher=Cipher(KEYS, names))

    def drain(self, visibility: int) -> int:
        with Tasks(self.queue, [], runtime=self.runtime) as tasks:
            return tasks.drain(visibility=visibility)


@pytest.fixture
def clients(
    connection_string: str, table_client: TableClient, queue_client: QueueClient, container_client: ContainerClient
) -> Iterator[Clients]:
    with TableServiceClient.from_connection_string(connection_string) as service:
        yield Clients(table_client, service, queue_client, container_client, Runtime(failpoints=NoRequests()))


def long_named(queue: QueueClient) -> QueueClient:
    return QueueClient(f"http://{queue.primary_hostname}", "q" * 57, credential=queue.credential)


p = columns(Person)
REJECTIONS: list[tuple[str, Callable[[Clients], object]]] = [
    ("key.PartitionKey: .*U.002F", lambda to: to.people().get(BAD)),
    ("key.RowKey: 1025 UTF-16 units", lambda to: to.people().get(LONG)),
    ("key.PartitionKey: ", lambda to: to.people().delete(BAD)),
    ("key.PartitionKey: ", lambda to: to.people().update(BAD, lambda each: each)),
    ("key.PartitionKey: ", lambda to: to.people().get_many([BAD])),
    ("PartitionKey: an update cannot remove", lambda to: to.people().update(KEY, repr, remove=["PartitionKey"])),  # type: ignore[arg-type] # it is not called
    ("Person.note: .*lone surrogate", lambda to: to.people().where(p.team == "p", p.note == "\ud800")),
    ("Person.weight: .*nan", lambda to: to.people().where(p.team == "p", p.weight < NAN)),
    ("Person.weight: .*inf", lambda to: to.people().where(p.team == "p", p.weight < float("inf"))),
    ("stream.PartitionKey: ", lambda to: to.stream("a/b")),
    ("event a/b.RowKey: ", lambda to: to.stream().append([Event(id="a/b")])),
    ("1025 UTF-16 units", lambda to: to.stream().append([Event(id="x" * 1018)])),
    ("event a/b.RowKey: ", lambda to: to.stream().find("a/b")),
    ("lease.PartitionKey: ", lambda to: to.lease(BAD)),
    ("lease.Holder: 32769 UTF-16 units", lambda to: to.lease(holder="x" * 32_769)),
    ("name of a blob", lambda to: to.lease(blob=(to.container, "x" * 1025))),
    ("name of a blob", lambda to: to.lease(blob=(to.container, ""))),
    ("1 to 604800 seconds, not for 0", lambda to: to.drain(0)),
    ("1 to 604800 seconds, not for 604801", lambda to: to.drain(604_801)),
    ("too long for a queue", lambda to: Tasks(long_named(to.queue), [])),
    ("saga a/b.RowKey: ", lambda to: Saga("a/b", records=Table(to.table, Bag), steps=[Step("one", print)])),
    ("Large.a-b: ", lambda to: Large(Table(to.table, Bag), to.container, "a-b")),
    ("salary: no class", lambda to: to.encrypted(Person, "note", "salary")),
    ("team: no class", lambda to: to.encrypted(Person, "team")),
    ("RowKey: no class", lambda to: to.encrypted(Open, "RowKey")),
    ("letters of raud", lambda to: user_sas(to.table, "p", permission="rx", expiry=LATER)),
    ("letters of raud", lambda to: user_sas(to.table, "p", permission="", expiry=LATER)),
    ("week.*: a period", lambda to: Periods(to.service, "Logins", Person, every="week", keep=timedelta(1))),  # type: ignore[arg-type] # it is the point
    ("minute.*: a period", lambda to: BlobLog(to.container, "web", every="minute")),  # type: ignore[arg-type] # as above
]


@pytest.mark.parametrize(("message", "call"), REJECTIONS)
def test_it_is_rejected_before_a_request(clients: Clients, message: str, call: Callable[[Clients], object]) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call(clients)


def test_what_the_service_takes_is_not_rejected(clients: Clients) -> None:
    clients.encrypted(Person, "note", "weight")
    clients.encrypted(Open, "salary")
    clients.lease(blob=(clients.container, "x" * 1024))
    stream: Stream[Any] = Stream(clients.table, "p")
    assert stream.append([Event(id="x" * 1017)]) == stream.find("x" * 1017) == 1
