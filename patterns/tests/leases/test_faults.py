"""A lease on a service: whatever fails at each request, a guarded write is done once, by the holder only."""

from uuid import uuid4

import pytest
from azure.data.tables import TableClient

from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.failpoints import NoFailpoints
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read
from lazulite_patterns.leases import LeaseLost, LeaseTaken
from lazulite_patterns.leases.protocol import LeaseProtocol
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns_simulation import Crash, Fault, FaultAt, every_fault

from ..faults import FAST, Run, aside
from .test_protocol import Hasty

NOTHING = NoFailpoints()


def leases(table: TableClient) -> tuple[LeaseProtocol, Hasty]:
    """Return a lease of a new partition, and the same for a process that does not wait until it is free."""
    key = EntityKey(uuid4().hex, "lease")
    return LeaseProtocol(table.table_name, key, 30, policy=FAST), Hasty(table.table_name, key, 30, policy=FAST)


def test_every_fault_of_a_guarded_write(on_service: Run, table_client: TableClient) -> None:
    def attempt(fault: FaultAt) -> None:
        lease, other = leases(table_client)
        data = EntityKey(lease.key.partition_key, "data")
        insert = [Planned(Operation(Kind.INSERT, data, {"N": 1}))]
        grant = on_service(lease.acquire(), NOTHING)

        def rival() -> None:
            aside(table_client, other.acquire())

        fault.rival = rival
        try:
            on_service(lease.guard(grant, insert), fault)
        except Crash:
            with pytest.raises(LeaseTaken):
                on_service(lease.acquire(), NOTHING)
            successor = on_service(other.acquire(), NOTHING)
            if on_service(perform(Read(lease.table, data)), NOTHING) is None:
                assert fault.fault is Fault.CRASH_BEFORE
                on_service(lease.guard(successor, insert), NOTHING)
            with pytest.raises(LeaseLost):
                on_service(lease.guard(grant, insert), NOTHING)
        except LeaseLost:
            assert fault.fault is Fault.RIVAL
            assert on_service(perform(Read(lease.table, data)), NOTHING) is None, "an old holder wrote"
            return
        assert on_service(perform(Read(lease.table, data)), NOTHING) is not None

    assert sum(1 for _ in every_fault(attempt, rival=lambda: None)) >= 7


def test_every_fault_of_taking_it(on_service: Run, table_client: TableClient) -> None:
    def attempt(fault: FaultAt) -> None:
        lease, other = leases(table_client)
        try:
            grant = on_service(lease.acquire(), fault)
        except Crash:
            grant = on_service(other.acquire(), NOTHING)
        data = Planned(Operation(Kind.PUT, EntityKey(lease.key.partition_key, "data")))
        on_service(lease.guard(grant, [data]), NOTHING)
        with pytest.raises(LeaseTaken):
            on_service(lease.acquire(), NOTHING)

    assert sum(1 for _ in every_fault(attempt)) >= 2 * 6
