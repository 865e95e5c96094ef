"""Listings in blobs, on the service."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.blob import ContainerClient
from azure.storage.blob.aio import ContainerClient as AsyncContainerClient
from azure.storage.queue import QueueClient

from lazulite_patterns import (
    Column,
    EntityFormatError,
    EntityValueError,
    Listing,
    SchemaError,
    column,
    entity,
    partition,
    row,
)
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.blobs import BlobGet, BlobPut, text_of
from lazulite_patterns.effects.effect import Effect, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.indexes import check as kinds
from lazulite_patterns.indexes import list_blobs, lists
from lazulite_patterns.indexes.entries import Entry
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.table.table import Table
from lazulite_patterns.transactions import IndexTask
from lazulite_patterns.transactions.tasks import Tasks
from lazulite_patterns_simulation import Simulation

from ..declared import indexed

LATER = Runtime(utc_now=lambda: datetime.now(UTC) + timedelta(seconds=700))


@entity
class Person:
    department: Column[str] = partition()
    name: Column[str] = row()
    city: Column[str | None]
    street: Column[str] = column(default="A/B 1")


KEY = EntityKey("Sales", "ann")
ANN, BOB, CAT = Person("Sales", "ann", "Rome"), Person("Sales", "bob", "Rome"), Person("IT", "cat", "Oslo")


def declared(container: str) -> Listing:
    return Listing("city", "city", "street", place="blob", container=container)


def table(client: TableClient, container: ContainerClient, runtime: Runtime | None = None) -> Table[Person]:
    quick, indexes = Policy(first_wait_seconds=0.001), [declared(container.container_name)]
    return indexed(Person, indexes, lambda: Table(client, Person, clients=[container], runtime=runtime, policy=quick))


def names(found: Iterable[Person]) -> list[str]:
    return sorted(each.name for each in found)


def test_every_write_keeps_the_lists(table_client: TableClient, container_client: ContainerClient) -> None:
    staff = table(table_client, container_client)
    for each in (ANN, BOB, CAT):
        staff.insert(each)
    container_client.upload_blob(f"{table_client.table_name}/=XX", b"of another program")
    container_client.upload_blob("other/blob", b"")
    assert names(staff.by(city="Rome", street="A/B 1")) == names(staff.by(city="Rome")) == ["ann", "bob"]
    assert names(staff.by(Person.city.starts_with("Ro"))) == ["ann", "bob"]
    assert names(staff.by(Person.street.starts_with("A"), city="Rome")) == ["ann", "bob"]
    assert names(staff.by(city="Rom")) == names(staff.by(Person.street.starts_with("A."), city="Rome")) == []
    staff.update(ANN, lambda each: replace(each, city="Oslo"))
    staff.merge(BOB, street="C 2")
    assert names(staff.by(city="Oslo")) == ["ann", "cat"]
    assert names(staff.by(city="Rome", street="C 2")) == ["bob"]
    staff.upsert(replace(BOB, city=None))
    assert names(staff.by(Person.city.starts_with(""))) == ["ann", "cat"]
    (own,) = [each for each in container_client.list_blobs() if "_Index" in each.name]
    assert text_of(own.name.partition("/")[2]) == "_Index!city!Oslo!A.\ufffdB 1"
    assert unquote(own.name) == own.name, "it needs no escape in a URL"
    staff.delete(ANN)
    staff.delete(CAT)
    assert sorted(each.name for each in container_client.list_blobs()) == sorted(
        [f"{table_client.table_name}/=XX", "other/blob"]
    ), "a list without an item is deleted"


def test_a_worker_of_a_queue_writes_the_lists(
    table_client: TableClient, container_client: ContainerClient, queue_client: QueueClient
) -> None:
    listing = Listing(
        "city", "city", place="blob", container=container_client.container_name, queue=queue_client.queue_name
    )
    staff = indexed(Person, [listing], lambda: Table(table_client, Person, clients=[container_client, queue_client]))
    staff.insert(ANN)
    assert list(container_client.list_blobs()) == []
    with Tasks(queue_client, [IndexTask(staff)]) as tasks:
        assert tasks.drain() == 1
        assert names(staff.by(city="Rome")) == ["ann"]
        staff.delete(ANN)
        tasks.drain()
    assert list(container_client.list_blobs()) == []


def test_the_auditor_puts_an_entity_into_its_list(table_client: TableClient, container_client: ContainerClient) -> None:
    staff = table(table_client, container_client)
    staff.insert(ANN)
    for each in container_client.list_blobs():
        container_client.delete_blob(each.name)
    assert [each.kind for each in audit(staff)] == [kinds.NO_ENTRY]
    assert [each.repaired for each in audit(table(table_client, container_client, LATER), repair=True)] == [True]
    assert list(audit(staff)) == []
    assert names(staff.by(city="Rome")) == ["ann"]


def test_the_auditor_takes_entities_out_of_lists(table_client: TableClient, container_client: ContainerClient) -> None:
    staff, later = table(table_client, container_client), table(table_client, container_client, LATER)
    for each in (ANN, BOB, CAT):
        staff.insert(each)
    for each in (ANN, CAT):  # By another program, which keeps no lists.
        table_client.delete_entity(each.department, each.name)
    container_client.upload_blob("other/blob", b"")
    container_client.upload_blob(f"{table_client.table_name}/other", b"")
    found = list(audit(staff, repair=True))
    assert [(each.kind, each.repaired) for each in found] == [(kinds.NO_FIT_LISTED, False)] * 2, "they may be new"
    assert {each.table for each in found} == {f"{container_client.container_name}/{table_client.table_name}/_Index"}
    assert [each.detail for each in found] == ["('IT', 'cat')", "('Sales', 'ann')"]
    assert [each.repaired for each in audit(later, repair=True)] == [True, True]
    assert list(audit(staff)) == []
    assert names(staff.by(city="Rome")) == ["bob"]
    assert len([each for each in container_client.list_blobs() if "_Index" in each.name]) == 1, "Oslo has no list"


def test_a_damaged_list_is_deleted_and_written_anew(
    table_client: TableClient, container_client: ContainerClient
) -> None:
    staff, later = table(table_client, container_client), table(table_client, container_client, LATER)
    staff.insert(ANN)
    (blob,) = container_client.list_blobs()
    container_client.upload_blob(blob.name, b"[", overwrite=True)
    with pytest.raises(EntityFormatError):
        names(staff.by(city="Rome"))
    assert [(each.kind, each.repaired) for each in audit(staff, repair=True)] == [(kinds.DAMAGED_LIST, False)]
    found = [*audit(later, repair=True), *audit(later, repair=True)]
    assert [(each.kind, each.repaired) for each in found] == [(kinds.DAMAGED_LIST, True), (kinds.NO_ENTRY, True)]
    assert list(audit(staff)) == []
    assert names(staff.by(city="Rome")) == ["ann"]


def test_wrong_listings_and_values_are_rejected(table_client: TableClient, container_client: ContainerClient) -> None:
    for wrong in ({"place": "blob"}, {"container": "c"}, {"place": "blob", "container": "c", "table": "T"}):
        with pytest.raises(SchemaError):
            Listing("city", "city", **wrong)  # type: ignore[arg-type] # it is the point
    with pytest.raises(ValueError, match="no client of the container lists"):
        indexed(Person, [declared("lists")], lambda: Table(table_client, Person))
    staff = table(table_client, container_client)
    with pytest.raises(EntityValueError, match="too long"):
        staff.insert(replace(ANN, city="€" * 120))
    container_client.delete_container()
    with pytest.raises(Rejected, match="ContainerNotFound"):
        staff.insert(ANN)
    with pytest.raises((Rejected, ResourceNotFoundError)):
        names(staff.by(city="Rome"))
    container_client.create_container()


async def test_asynchronous_programs_have_the_same(
    connection_string: str, table_client: TableClient, container_client: ContainerClient
) -> None:
    container = container_client.container_name
    async with (
        AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client,
        AsyncContainerClient.from_connection_string(connection_string, container) as blobs,
    ):
        staff = indexed(Person, [declared(container)], lambda: AsyncTable(client, Person, clients=[blobs]))
        await staff.insert(ANN)
        await staff.insert(BOB)
        await staff.merge(ANN, city="Oslo")
        assert [each.name async for each in staff.by(city="Rome")] == ["bob"]
        assert [each.name async for each in staff.by(city="Oslo")] == ["ann"]


PLACE = Entry("t", EntityKey("v", "d"), listed=True, container="c")
KEYS = [EntityKey("p", f"{number}\ud800") for number in range(20)]


def test_a_list_of_several_parts_is_read_as_it_was_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_blobs, "PART_BYTES", 16)
    monkeypatch.setattr(lists, "ROW_BYTES_MAX", 500)  # A blob does not go on in another one.
    simulation = Simulation()
    for key in KEYS[:10]:
        simulation.run(lists.put(PLACE, key, Policy()))

    class Rival:
        """Changes the list after each of its first three parts."""

        left = 3

        def before(self, effect: Effect[object]) -> None: ...

        def after(self, effect: Effect[object]) -> None:
            if isinstance(effect, BlobGet) and self.left:
                self.left -= 1
                other = Simulation(self.left)
                other.world = simulation.world
                other.run(lists.put(PLACE, KEYS[10 + self.left], Policy()))
                simulation.world = other.world

    simulation.runtime.failpoints = Rival()
    (row,) = simulation.run(lists.rows(PLACE, Policy()))
    assert {item.key for item in lists.items(row)} == set(KEYS[:13])


NO_LISTS = [b"\xff", b"", b"7", b"[7]", b'[["p"]]', b'[["p", "r", 1]]', b'[["p", "r", "", "", ""]]']


@pytest.mark.parametrize("octets", NO_LISTS)
def test_a_blob_that_is_no_list_is_not_changed(octets: bytes) -> None:
    simulation = Simulation()
    simulation.run(perform(BlobPut("c", "t/v", octets)))
    before = simulation.world.state
    for change in (lists.find(PLACE, Policy()), lists.put(PLACE, KEYS[0], Policy())):
        with pytest.raises(EntityFormatError, match=r"'v'.* is no list"):
            simulation.run(change)
    assert simulation.world.state == before


def test_a_list_of_more_than_64_mib_is_neither_read_nor_written(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation()
    simulation.run(lists.put(PLACE, KEYS[0], Policy()))
    monkeypatch.setattr(list_blobs, "PART_BYTES", 1)
    monkeypatch.setattr(list_blobs, "LIST_BYTES_MAX", 1)
    with pytest.raises(EntityFormatError, match="is no list"):
        simulation.run(lists.find(PLACE, Policy()))
    monkeypatch.setattr(list_blobs, "LIST_BYTES_MAX", 0)
    with pytest.raises(EntityValueError, match="0 fit"):
        simulation.run(lists.put(PLACE._replace(key=EntityKey("w", "d")), KEYS[0], Policy()))
