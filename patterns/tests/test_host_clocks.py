"""What is young and what is old is judged by the service's time, though the clock of a host is hours wrong."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from uuid import uuid4

import pytest
from azure.data.tables import TableClient, TableServiceClient
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from lazulite_patterns import Bag, Busy, Column, Index, Listing, column, entity, partition, row
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects import runtime as runtime_module
from lazulite_patterns.effects.blobs import BlobEffect
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import Batch, EntityKey, Write
from lazulite_patterns.leases import Lease, LeaseTaken
from lazulite_patterns.shapes import Fat, Large, PeriodExpired, Periods
from lazulite_patterns.table.table import Table
from lazulite_patterns.transactions.tasks import Tasks

from .declared import indexed
from .transactions.test_claims import LARGE
from .transactions.test_tasks import Calling, fail

HOURS = [-5, 5]
HOUR = timedelta(hours=1)


@entity
class Person:
    department: Column[str] = partition()
    name: Column[str] = row()
    email: Column[str]
    city: Column[str] = column(default="Rome")


ANN, BOB = Person("Sales", "ann", "a@contoso.com"), Person("Sales", "bob", "a@contoso.com")


class Storage(NamedTuple):
    """The clients of a test."""

    table: TableClient
    queue: QueueClient
    container: ContainerClient

    def staff(self, index: Index, runtime: Runtime | None = None) -> Table[Person]:
        clients = [self.container] if index.container else []
        return indexed(Person, [index], lambda: Table(self.table, Person, clients=clients, runtime=runtime))

    def declared(self, kind: str) -> Index:
        if kind == "blob":
            return Listing("email", "email", place="blob", container=self.container.container_name)
        if kind == "list":
            return Listing("email", "email", place="table")
        return Index("email", "email", unique=kind == "unique", copy=["city"] if kind == "copies" else [])

    def entries_count(self) -> int:
        return len(list(self.container.list_blobs())) + len(
            list(self.table.query_entities("PartitionKey ge '_Index!' and PartitionKey lt '_Index~'"))
        )


@pytest.fixture
def storage(table_client: TableClient, queue_client: QueueClient, container_client: ContainerClient) -> Storage:
    return Storage(table_client, queue_client, container_client)


@contextmanager
def clocks(hours: int, service_seconds: int = 0) -> Iterator[None]:
    """Let the host's clock be wrong by hours, and the service's one go on by seconds."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override] # a plain time is enough
            return datetime.now(tz) + hours * HOUR

    def on(text: str) -> datetime:
        return parsedate_to_datetime(text) + timedelta(seconds=service_seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime_module, "datetime", Wrong)
        patch.setattr(runtime_module, "parsedate_to_datetime", on)
        yield


class BeforeTheCommit:
    """Crashes before the entity of an insert is written."""

    def before(self, effect: Effect[object]) -> None:
        if isinstance(effect, Write | Batch) and "Sales" in str(effect):
            operation = effect.operation if isinstance(effect, Write) else effect.operations[0]
            if operation.key.partition_key == "Sales":
                raise Crash

    def after(self, effect: Effect[object]) -> None: ...


class BeforeTheRow:
    """Crashes after blobs or chunks, before the row that names them."""

    def __init__(self) -> None:
        self.written = 0

    def before(self, effect: Effect[object]) -> None:
        if isinstance(effect, Write) and self.written:
            raise Crash

    def after(self, effect: Effect[object]) -> None:
        self.written += isinstance(effect, BlobEffect | Batch | Write)


Clean = Callable[[], int]
"""Returns how many things it took for left behind."""


def audited(kind: str) -> Callable[[Storage], Clean]:
    """Leave an entry or an item behind, for the auditor."""

    def leave(storage: Storage) -> Clean:
        storage.staff(storage.declared(kind)).insert(ANN)
        storage.table.delete_entity(ANN.department, ANN.name)
        return lambda: sum(each.repaired for each in audit(storage.staff(storage.declared(kind)), repair=True))

    return leave


def intended(kind: str) -> Callable[[Storage], Clean]:
    """Leave the intent of an insert behind, for a delete of the entity."""

    def leave(storage: Storage) -> Clean:
        index = storage.declared(kind)
        with pytest.raises(Crash):
            storage.staff(index, Runtime(failpoints=BeforeTheCommit())).insert(ANN)

        def clean() -> int:
            before = storage.entries_count()
            storage.staff(index).insert(ANN)
            storage.staff(index).delete(ANN)
            return before - storage.entries_count()

        return clean

    return leave


def claimed(storage: Storage) -> Clean:
    """Leave a unique value behind, for another entity that takes it."""
    index = storage.declared("unique")
    storage.staff(index).insert(ANN)
    storage.table.delete_entity(ANN.department, ANN.name)

    def clean() -> int:
        try:
            storage.staff(index).insert(BOB)
        except Busy:
            return 0
        return 1

    return clean


def uploaded(storage: Storage) -> Clean:
    """Leave the blob of a large property behind."""
    bags = Table(storage.table, Bag)
    with pytest.raises(Crash):
        Large(bags, storage.container, "Photo", runtime=Runtime(failpoints=BeforeTheRow())).insert(
            Bag(PartitionKey="p", RowKey="r"), b"photo"
        )
    return lambda: Large(bags, storage.container, "Photo").collect()


def split(storage: Storage) -> Clean:
    """Leave the chunks of a fat entity behind."""
    with pytest.raises(Crash):
        Fat(storage.table, runtime=Runtime(failpoints=BeforeTheRow())).upsert(
            EntityKey("p", "r"), {"Photo": bytes(5_000_000)}
        )
    return lambda: min(1, Fat(storage.table).collect("p"))


def checked_in(storage: Storage) -> Clean:
    """Leave the blob of a message behind."""
    call = Calling(fail)

    def tasks() -> Tasks:
        return Tasks(storage.queue, [call], claims=storage.container)

    tasks().start(call, LARGE)
    storage.queue.clear_messages()
    return lambda: tasks().collect()


def leased(storage: Storage) -> Clean:
    """Leave a lease behind, for the next holder."""
    key = EntityKey("jobs", "lease")
    Lease(storage.table, key, Person, seconds=60).acquire()

    def clean() -> int:
        with suppress(LeaseTaken):
            Lease(storage.table, key, Person, seconds=60).acquire()
            return 1
        return 0

    return clean


LEFT: dict[str, Callable[[Storage], Clean]] = {
    **{f"audit of {kind}": audited(kind) for kind in ("plain", "copies", "unique", "list", "blob")},
    **{f"intent in {kind}": intended(kind) for kind in ("plain", "copies", "list", "blob")},
    "unique value": claimed,
    "blob of a large property": uploaded,
    "chunks of a fat entity": split,
    "blob of a message": checked_in,
    "lease": leased,
}


@pytest.mark.parametrize("reader", HOURS)
@pytest.mark.parametrize("writer", HOURS)
@pytest.mark.parametrize("leave", LEFT.values(), ids=LEFT.keys())
def test_what_is_left_behind_is_old_by_the_service(
    leave: Callable[[Storage], Clean], writer: int, reader: int, storage: Storage
) -> None:
    with clocks(writer):
        clean = leave(storage)
    with clocks(reader):
        assert clean() == 0, "it is young"
    with clocks(reader, service_seconds=700):
        assert clean() == 1, "it is old"


@pytest.mark.parametrize("hours", HOURS)
def test_tables_of_periods_expire_by_the_service(hours: int, connection_string: str) -> None:
    prefix, now = f"P{uuid4().hex[:16]}", datetime.now(UTC)
    with TableServiceClient.from_connection_string(connection_string, retry_total=0) as service:

        def periods() -> Periods[Person]:
            return Periods(service, prefix, Person, every="hour", keep=HOUR)

        old = service.create_table(periods().at(now - 4 * HOUR).client.table_name).table_name
        with clocks(hours):
            periods().insert(ANN, now)
            with pytest.raises(PeriodExpired):
                periods().insert(ANN, now - 4 * HOUR)
            assert periods().expire() == [old]
            assert periods().prepare(0)[0] >= periods().at(now).client.table_name
            first, *others = periods().names()
            assert first == periods().at(now).client.table_name
            for name in (first, *others):
                service.delete_table(name)


def test_the_time_of_the_service_goes_on_between_its_answers() -> None:
    seconds = iter([10.0, 12.5, 20.0, 21.0])
    runtime = Runtime(clock=lambda: next(seconds))
    assert runtime.answer(runtime_module.ServiceNow()) is None
    runtime.hear("Wed, 21 Oct 2026 07:28:00 GMT")
    assert runtime.answer(runtime_module.ServiceNow()) == datetime(2026, 10, 21, 7, 28, 2, 500_000, UTC)
    runtime.hear(None)
    runtime.hear("soon")
    assert runtime.answer(runtime_module.ServiceNow()) is None
