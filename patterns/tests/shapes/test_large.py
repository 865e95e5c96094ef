"""Properties in blobs, on the service."""

import hashlib
import io
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.blob import ContainerClient
from azure.storage.blob.aio import ContainerClient as AsyncContainerClient
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns import Column, EntityFormatError, Index, column, entity, partition, row
from lazulite_patterns.aio.shapes import Large as AsyncLarge
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.failpoints import Failpoints
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes import Absent, Conflict, Exists, Policy, Unavailable
from lazulite_patterns.shapes import BlobReference, Inconsistent, Large
from lazulite_patterns.shapes.protocols.large import LargeProtocol, Upload
from lazulite_patterns.shapes.protocols.orphans import ABSENT, CHANGED, ORPHAN, UNREADABLE, Collector
from lazulite_patterns.shapes.protocols.references import Owner
from lazulite_patterns.table.table import Table
from lazulite_patterns_simulation import Crash, Fault, FaultAt, every_fault

from ..declared import indexed
from .support import QUICK, counting, empty, later

KIB = 1024
KEY = EntityKey("Sales", "jones")


@entity(type="LargeEmployee")
class Employee:
    department: Column[str] = partition()
    name: Column[str] = row()
    email: Column[str] = column(default="")
    photo: Column[BlobReference | None] = column(form="json", default=None)


JONES = Employee("Sales", "jones", "jones@contoso.com")


def octets(count: int) -> bytes:
    return random.Random(count).randbytes(count)


def names(container: ContainerClient) -> list[str]:
    return [each.name for each in container.list_blobs()]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("length", [0, 1, 64 * KIB - 1, 64 * KIB + 1, 960 * KIB + 1, 20_480 * KIB])
def test_octets_of_any_length_are_read_as_they_were_written(
    table_client: TableClient, container_client: ContainerClient, length: int, stream: bool
) -> None:
    staff = indexed(Employee, [Index("email", "email")], lambda: Table(table_client, Employee))
    photos = Large(staff, container_client, "photo")
    data = octets(length)
    given = io.BytesIO(b"skipped" + data) if stream else data
    if isinstance(given, io.BytesIO):
        given.seek(7)
    reference = photos.insert(JONES, given, "image/jpeg")
    assert (reference.length, reference.sha256) == (length, hashlib.sha256(data).hexdigest())
    found = photos.get(KEY)
    assert found is not None
    assert (found.entity.photo, found.data) == (reference, data)
    assert container_client.get_blob_client(reference.name).get_blob_properties().content_settings.content_type == (
        "image/jpeg"
    )
    file = io.BytesIO(b"head")
    file.seek(4)
    assert photos.save(JONES, file) is True
    assert file.getvalue() == b"head" + data
    assert [each.photo for each in staff.by(email="jones@contoso.com")] == [reference]
    photos.put(KEY, b"new")
    assert len(names(container_client)) == 1, "the blob of before is deleted"
    assert photos.delete(KEY) is True
    assert (photos.delete(KEY), photos.get(KEY), photos.save(KEY, file)) == (False, None, False)
    assert names(container_client) == []
    assert list(staff.by(email="jones@contoso.com")) == []


def test_other_writes_keep_the_blob(table_client: TableClient, container_client: ContainerClient) -> None:
    staff = Table(table_client, Employee)
    photos = Large(staff, container_client, "photo")
    staff.insert(JONES)
    assert photos.get(KEY) == (JONES, None, None)
    assert photos.clear(KEY) is False
    photos.put(KEY, b"photo")
    staff.merge(KEY, email="new@contoso.com")
    found = photos.get(KEY)
    assert found is not None
    assert (found.entity.email, found.data) == ("new@contoso.com", b"photo")
    assert photos.clear(KEY) is True
    assert photos.get(KEY) == (Employee("Sales", "jones", "new@contoso.com"), None, None)
    assert names(container_client) == []
    with pytest.raises(Exists):
        photos.insert(JONES, b"other")
    with pytest.raises(Absent):
        photos.put(EntityKey("Sales", "absent"), b"other")
    assert names(container_client) == [], "nothing is left of writes that failed"


def test_bags_have_them_too(table_client: TableClient, container_client: ContainerClient) -> None:
    photos = Large(Table(table_client, Bag), container_client, "Photo")
    photos.insert(Bag(PartitionKey="p", RowKey="r", Name="Ann"), b"photo")
    found = photos.get(EntityKey("p", "r"))
    assert found is not None
    assert (found.data, found.entity["Name"]) == (b"photo", "Ann")


@given(
    partition_key=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=1024),
    row_key=st.text(max_size=1024),
)
def test_each_names_the_other(partition_key: str, row_key: str) -> None:
    owner = Owner("Staff", EntityKey(partition_key, row_key), "Größe")
    assert Owner.of(owner.metadata) == owner
    assert len("".join(owner.metadata.values()).encode("ascii")) < 7 * KIB
    name = owner.blob_name("0123456789abcdef")
    assert len(name) <= 1024
    assert name.isascii()
    assert not set(name) & set(".%\\?# ")
    assert "//" not in name


LONG = EntityKey("\u4e2d" * 512, "x" * 1024)


def test_keys_of_any_length_have_blobs(table_client: TableClient, container_client: ContainerClient) -> None:
    photos = Large(Table(table_client, Bag), container_client, "Photo")
    for key in (LONG, EntityKey("", ""), EntityKey("a.", "b..c %2F é")):
        photos.insert(Bag(PartitionKey=key.partition_key, RowKey=key.row_key), b"photo")
        found = photos.get(key)
        assert found is not None
        assert found.data == b"photo"
    table_client.delete_entity(*LONG)
    table_client.delete_entity("", "")
    assert photos.collect() == 0, "they are too young"
    assert Large(Table(table_client, Bag), container_client, "Photo", runtime=Runtime(utc_now=later)).collect() == 2
    assert len(names(container_client)) == 1


def driver(table: TableClient, container: ContainerClient, fault: Failpoints | None = None) -> Driver:
    runtime = Runtime(failpoints=fault or counting(), utc_now=later)
    return Driver({table.table_name: table}, runtime, lambda _: None, containers={container.container_name: container})


def clear(container: ContainerClient) -> None:
    for each in names(container):
        container.delete_blob(each)


@pytest.mark.parametrize(
    ("before", "after", "stream"),
    [(b"old", b"new", False), (b"old", b"new", True), (None, b"new", False), (b"old", None, False)],
)
def test_every_fault_leaves_a_whole_entity_and_the_rest_is_collected(
    table_client: TableClient,
    container_client: ContainerClient,
    before: bytes | None,
    after: bytes | None,
    stream: bool,
) -> None:
    """Crashes, lost requests and lost answers at each effect; then the collection."""
    session = Table(table_client, Employee, policy=QUICK).session
    protocol = LargeProtocol(session, container_client.container_name, "photo", QUICK, part_bytes=2)
    collector = Collector(session.name, container_client.container_name, "photo", QUICK)

    def attempt(fault: FaultAt) -> None:
        empty(table_client)
        clear(container_client)
        working = driver(table_client, container_client)
        working.run(session.insert(JONES))
        if before is not None:
            working.run(protocol.put(KEY, Upload(before, "text/plain")))
        failing = driver(table_client, container_client, fault)
        data = io.BytesIO(after or b"") if stream else after or b""
        crashed = False
        try:
            failing.run(protocol.delete(KEY) if after is None else protocol.put(KEY, Upload(data, "text/plain")))
        except Crash:
            crashed = True
        found = working.run(protocol.get(KEY))
        data_found = None if found is None else found.data
        assert data_found in ({before, after} if crashed else {after})
        assert crashed or len(names(container_client)) == (data_found is not None), "without a crash nothing is left"
        working.run(collector.collect())
        assert working.run(protocol.get(KEY)) == found
        assert len(names(container_client)) == (data_found is not None), "no blob is left"

    assert sum(1 for _ in every_fault(attempt)) >= 18


def test_every_fault_of_a_read(table_client: TableClient, container_client: ContainerClient) -> None:
    session = Table(table_client, Employee, policy=QUICK).session
    protocol = LargeProtocol(session, container_client.container_name, "photo", QUICK, part_bytes=2)
    driver(table_client, container_client).run(protocol.insert(JONES, Upload(b"12345", "text/plain")))

    def rival() -> None:
        driver(table_client, container_client).run(protocol.put(KEY, Upload(b"67890ab", "text/plain")))

    def attempt(fault: FaultAt) -> None:
        with suppress(Crash):
            found = driver(table_client, container_client, fault).run(protocol.get(KEY))
            assert found is not None
            assert found.data in {b"12345", b"67890ab"}, "a torn read"

    assert sum(1 for _ in every_fault(attempt, rival)) >= 7 * 4


class Once:
    """A stream that cannot be positioned."""

    def __init__(self, data: bytes) -> None:
        self.read = io.BytesIO(data).read


def test_a_stream_that_cannot_be_read_again(table_client: TableClient, container_client: ContainerClient) -> None:
    staff = Table(table_client, Employee)
    photos = Large(staff, container_client, "photo")
    photos.insert(JONES, Once(b"photo"))
    found = photos.get(KEY)
    assert found is not None
    assert found.data == b"photo"
    failing = Large(staff, container_client, "photo", runtime=Runtime(failpoints=FaultAt(1, Fault.ANSWER_LOST)))
    with pytest.raises(Unavailable, match="not uploaded"):
        failing.put(KEY, Once(b"other"))
    assert photos.get(KEY) == found
    later_photos = Large(staff, container_client, "photo", runtime=Runtime(utc_now=later))
    assert (photos.collect(), later_photos.collect(), photos.get(KEY)) == (0, 1, found)


def test_a_writer_that_loses_takes_the_row_of_the_winner(
    table_client: TableClient, container_client: ContainerClient
) -> None:
    staff = Table(table_client, Employee)
    staff.insert(JONES)
    other = Large(staff, container_client, "photo")

    def rival() -> None:
        other.put(KEY, b"other")
        staff.merge(KEY, email="x")

    for number in range(4):
        failpoints = FaultAt(number, Fault.RIVAL, rival)
        Large(staff, container_client, "photo", runtime=Runtime(failpoints=failpoints)).put(KEY, b"own")
        found = other.get(KEY)
        assert found is not None
        assert (found.data, found.entity.email) == (b"own" if number < 3 else b"other", "x")
        assert len(names(container_client)) == 1

    class Always:
        """Another writer is faster, each time."""

        def before(self, effect: object) -> None:
            staff.merge(KEY, email="y")

        def after(self, effect: object) -> None: ...

    with pytest.raises(Conflict):
        Large(staff, container_client, "photo", runtime=Runtime(failpoints=Always())).put(KEY, b"own")
    assert len(names(container_client)) == 1, "nothing is left of it"


def test_blobs_of_others_stay(table_client: TableClient, container_client: ContainerClient) -> None:
    staff = Table(table_client, Bag)
    late = Runtime(utc_now=later)
    photos, scans = (Large(staff, container_client, name, runtime=late) for name in ("Photo", "Scan"))
    photos.insert(Bag(PartitionKey="p", RowKey="r"), b"photo")
    scans.put(EntityKey("p", "r"), b"scan")
    metadata = Owner("Other", EntityKey("p", "r"), "Photo").metadata
    container_client.upload_blob(f"{table_client.table_name}/foreign", b"", metadata=metadata)
    container_client.upload_blob(f"{table_client.table_name}/none", b"")
    container_client.upload_blob("elsewhere", b"")
    table_client.update_entity({"PartitionKey": "p", "RowKey": "r", "Photo": "no reference"})
    assert photos.collect() == 0, "the property that cannot be read may name it"
    table_client.delete_entity("p", "r")
    assert photos.collect() == 1
    assert scans.collect() == 1
    assert len(names(container_client)) == 3


def test_damage_is_named(table_client: TableClient, container_client: ContainerClient) -> None:
    staff = Table(table_client, Employee)
    photos = Large(staff, container_client, "photo", audit_hashes=True)
    reference = photos.insert(JONES, b"photo")
    assert list(audit(photos)) == []
    for data, error in ((b"other", "other octets"), (b"shor", "other octets"), (b"", "other octets")):
        container_client.upload_blob(reference.name, data, overwrite=True)
        with pytest.raises(Inconsistent, match=error):
            photos.get(KEY)
        assert [each.kind for each in audit(photos)] == [CHANGED]
    container_client.delete_blob(reference.name)
    with pytest.raises(Inconsistent, match="absent"):
        photos.get(KEY)
    assert [(each.kind, each.detail) for each in audit(photos)] == [(ABSENT, reference.name)]
    table_client.update_entity({"PartitionKey": "Sales", "RowKey": "jones", "photo": "{}"})
    assert [each.kind for each in audit(photos)] == [UNREADABLE]
    with pytest.raises(EntityFormatError):
        photos.get(KEY)
    photos.put(KEY, b"photo")
    assert list(audit(photos)) == []


def test_the_auditor_finds_blobs_that_no_entity_names(
    table_client: TableClient, container_client: ContainerClient
) -> None:
    staff = Table(table_client, Bag)
    photos, scans = (Large(staff, container_client, name) for name in ("Photo", "Scan"))
    orphan = photos.insert(Bag(PartitionKey="p", RowKey="r"), b"photo")
    photos.insert(Bag(PartitionKey="p", RowKey="s"), b"photo")
    container_client.upload_blob(f"{table_client.table_name}/none", b"")
    table_client.delete_entity("p", "r")
    assert list(audit(scans)) == [], "blobs of another property"
    (young,) = audit(photos, repair=True)
    place = f"{container_client.container_name}/{table_client.table_name}"
    assert (young.kind, young.table, young.key.partition_key, young.repaired) == (ORPHAN, place, orphan.name, False)
    old = Large(staff, container_client, "Photo", runtime=Runtime(utc_now=later))
    assert [each.repaired for each in audit(old, repair=True)] == [True]
    assert list(audit(photos)) == []
    assert len(names(container_client)) == 2


def test_bad_input_is_rejected_before_it_is_sent(table_client: TableClient, container_client: ContainerClient) -> None:
    count = counting()
    photos = Large(Table(table_client, Bag), container_client, "photo", runtime=Runtime(failpoints=count))
    bad: list[Callable[[], Any]] = [
        lambda: photos.insert(Bag(PartitionKey="p/q", RowKey="r"), b""),
        lambda: photos.put(EntityKey("p/q", "r"), b""),
        lambda: photos.put(EntityKey("p", "r"), b"", "text\r\nplain"),
        lambda: photos.put(EntityKey("p", "r"), b"", "é"),
        lambda: photos.get(EntityKey("p", "x" * 1025)),
    ]
    for each in bad:
        with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
            each()
    with pytest.raises(ValueError, match="270 seconds"):
        Large(Table(table_client, Bag), container_client, "Photo", policy=Policy(deadline_seconds=270))
    assert count.count == 0


def test_costs_are_those_of_the_page(table_client: TableClient, container_client: ContainerClient) -> None:
    count = counting()
    photos = Large(Table(table_client, Employee), container_client, "photo", runtime=Runtime(failpoints=count))

    def cost(step: Callable[[], object]) -> int:
        before = count.count
        step()
        return count.count - before

    costs = [cost(lambda: photos.insert(JONES, b"1")), cost(lambda: photos.get(KEY))]
    costs += [cost(lambda: photos.put(KEY, b"2")), cost(lambda: photos.clear(KEY)), cost(lambda: photos.put(KEY, b"3"))]
    assert [*costs, cost(photos.collect), cost(lambda: photos.delete(KEY))] == [2, 2, 4, 3, 3, 1, 3]


async def test_asynchronous_programs_have_the_same(
    connection_string: str, table_client: TableClient, container_client: ContainerClient
) -> None:
    async with (
        AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as table,
        AsyncContainerClient.from_connection_string(connection_string, container_client.container_name) as container,
    ):
        photos = AsyncLarge(AsyncTable(table, Employee), container, "photo", runtime=Runtime(utc_now=later))
        await photos.insert(JONES, b"photo")
        await photos.put(KEY, io.BytesIO(b"another"))
        found = await photos.get(KEY)
        assert found is not None
        assert found.data == b"another"
        file = io.BytesIO()
        assert await photos.save(KEY, file) is True
        assert file.getvalue() == b"another"
        await table.delete_entity(*KEY)
        assert await photos.collect() == 1
        assert await photos.collect() == 0
        assert await photos.clear(KEY) is False
        assert await photos.delete(KEY) is False
