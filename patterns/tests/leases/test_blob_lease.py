"""The lease of a blob, on the service."""

import threading
from contextlib import suppress
from uuid import uuid4

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.blob import BlobLeaseClient, ContainerClient
from azure.storage.blob.aio import ContainerClient as AsyncContainerClient

from lazulite_patterns.aio.leases import Lease as AsyncLease
from lazulite_patterns.effects.blobs import LeaseRenew
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.failpoints import Failpoints, NoFailpoints
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.leases import Lease, LeaseLost, LeaseTaken
from lazulite_patterns.leases.blob_protocol import BlobLeaseProtocol
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns_simulation import Crash, FaultAt, every_fault

from ..faults import FAST

KEY = EntityKey("jobs", "lease")


def lease(table: TableClient, container: ContainerClient, holder: str = "") -> Lease[Bag]:
    return Lease(table, KEY, blob=(container, "leader"), holder=holder)


def broken(container: ContainerClient, blob: str = "leader") -> None:
    """Free a lease as an operator does, as if its time was over."""
    with suppress(HttpResponseError):  # It may be free, or not be there yet.
        BlobLeaseClient(container.get_blob_client(blob)).break_lease(0)


def rows(table: TableClient) -> list[str]:
    return [each["RowKey"] for each in table.list_entities()]


def test_one_of_two_holds_it(table_client: TableClient, container_client: ContainerClient) -> None:
    one, other = lease(table_client, container_client, "one"), lease(table_client, container_client, "other")
    assert one.acquire().token == 1
    assert one.held
    with pytest.raises(LeaseTaken, match="leader"):
        other.acquire()
    with one.guard() as transaction:
        transaction.upsert(Bag(PartitionKey="jobs", RowKey="a"))
    one.renew()
    blob = container_client.get_blob_client("leader")
    with pytest.raises(HttpResponseError, match="lease"):
        blob.upload_blob(b"", overwrite=True)
    assert one.grant is not None
    blob.upload_blob(b"by its holder", overwrite=True, lease=BlobLeaseClient(blob, one.grant.id))
    one.release()
    assert not one.held
    assert other.acquire().token == 2
    with pytest.raises(LeaseLost), one.guard() as transaction:
        transaction.upsert(Bag(PartitionKey="jobs", RowKey="late"))
    assert rows(table_client) == ["a", "lease"]


def test_a_holder_that_pauses_is_fenced(table_client: TableClient, container_client: ContainerClient) -> None:
    one, other = lease(table_client, container_client), lease(table_client, container_client)
    one.acquire()
    broken(container_client)
    other.acquire()
    assert one.held, "by its own clock"
    with pytest.raises(LeaseLost), one.guard() as transaction:
        transaction.upsert(Bag(PartitionKey="jobs", RowKey="late"))
    with pytest.raises(LeaseLost):
        one.renew()
    one.release()
    other.renew()
    with other.guard() as transaction:
        transaction.upsert(Bag(PartitionKey="jobs", RowKey="own"))
    assert rows(table_client) == ["lease", "own"]


def test_every_fault_of_taking_and_renewing_it(table_client: TableClient, container_client: ContainerClient) -> None:
    container = container_client.container_name

    def driver(failpoints: Failpoints) -> Driver:
        clients = {container: container_client}
        return Driver({"t": table_client}, Runtime(failpoints=failpoints), lambda _: None, containers=clients)

    def attempt(fault: FaultAt) -> None:
        name = uuid4().hex
        protocol = BlobLeaseProtocol("t", EntityKey(name, "lease"), 60, "", FAST, container, name)
        guarded = [Planned(Operation(Kind.PUT, EntityKey(name, "data")))]
        working, failing = driver(NoFailpoints()), driver(fault)
        try:
            grant = failing.run(protocol.acquire())
            failing.run(protocol.renew(grant))
        except Crash:
            broken(container_client, name)
            grant = working.run(protocol.acquire())
        with pytest.raises(LeaseTaken):
            working.run(protocol.acquire())
        working.run(protocol.guard(grant, guarded))
        try:
            failing.run(protocol.release(grant))
        except Crash:
            broken(container_client, name)
            working.run(protocol.release(grant))
        with pytest.raises(LeaseLost):
            working.run(protocol.guard(grant, guarded))
        working.run(protocol.acquire())

    assert sum(1 for _ in every_fault(attempt)) >= 5 * 6


async def test_an_asynchronous_lease_is_renewed(
    connection_string: str, table_client: TableClient, container_client: ContainerClient
) -> None:
    renewed = threading.Event()

    class Watching:
        """Failpoints: waits for a renewal."""

        def before(self, effect: Effect[object]) -> None: ...

        def after(self, effect: Effect[object]) -> None:
            if isinstance(effect, LeaseRenew):
                renewed.set()

    async with (
        AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as table,
        AsyncContainerClient.from_connection_string(connection_string, container_client.container_name) as container,
    ):
        own = AsyncLease(table, KEY, blob=(container, "leader"), seconds=15, runtime=Runtime(failpoints=Watching()))

        async def work(given: object) -> None:
            assert given is own
            await own.renew()
            async with own.guard() as transaction:
                transaction.upsert(Bag(PartitionKey="jobs", RowKey="a"))

        await own.run(work)
    assert renewed.is_set()
    assert rows(table_client) == ["a", "lease"]
    assert lease(table_client, container_client).acquire().token == 2


@pytest.mark.parametrize("seconds", [14, 15.5, 61])
def test_the_service_limits_the_seconds(seconds: float) -> None:
    with pytest.raises(ValueError, match="15 to 60"):
        BlobLeaseProtocol("t", KEY, seconds)
