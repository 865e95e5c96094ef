"""The lease of a blob: no holder of before passes once another process took it, whatever the clocks say."""

from collections.abc import Callable, Sequence

import pytest

from lazulite_patterns.effects.blobs import LeaseAcquire
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.failpoints import NoFailpoints
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read, Stored, Write
from lazulite_patterns.leases import Grant, LeaseLost, LeaseTaken
from lazulite_patterns.leases.blob_protocol import BlobLeaseProtocol
from lazulite_patterns.outcomes import OutcomeUnknown, Policy
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns_simulation import (
    Crash,
    Fault,
    FaultAt,
    InvariantError,
    Simulation,
    World,
    every_fault,
    explore,
)

from .test_protocol import Away, data, never_back

KEY = EntityKey("jobs", "lease")
DATA = EntityKey("jobs", "data")
LEASE = BlobLeaseProtocol("t", KEY, 30, "host-1", Policy(), "c", "leader")


class Lazy(BlobLeaseProtocol):
    """Leaves the row to the first transaction, so that a holder of before passes until then."""

    def _put(self, grant: Grant, row: Stored | None, grant_id: str, planned: Sequence[Planned]) -> Protocol[None]:
        grant.row = row
        if planned:
            yield from super()._put(grant, row, grant_id, planned)


class Unconditional(BlobLeaseProtocol):
    """Writes its row whatever is there."""

    def _put(self, grant: Grant, row: Stored | None, grant_id: str, planned: Sequence[Planned]) -> Protocol[None]:
        own = Planned(Operation(Kind.PUT, self.key, {"Id": grant_id, "Token": grant.token}))
        yield from write(self.table, [own, *planned], self.policy)


class Forgetful(BlobLeaseProtocol):
    """Takes every row for its own."""

    def _is_of(self, row: Stored, grant: Grant) -> bool:
        return True


class Unguarded(BlobLeaseProtocol):
    """Looks at the lease of the blob first, and then writes."""

    def guard(self, grant: Grant, planned: Sequence[Planned]) -> Protocol[None]:
        yield from self.renew(grant)
        yield from write(self.table, planned, self.policy)


def fenced(world: World) -> None:
    """After a process took the lease, no holder of before writes: what that process reads then stays."""
    never_back(world)
    taken = {int(each.key.partition_key): each.properties["Read"] for each in world.entities("taken")}
    assert len(taken) == len(world.entities("taken")), "two grants have one token"
    found = world.entity("t", DATA)
    if taken and found is not None and int(str(found.properties["Token"])) < max(taken):
        assert found.etag == taken[max(taken)], "a holder of before passed"


def holder(kind: type[BlobLeaseProtocol]) -> Callable[[], Protocol[object]]:
    protocol = kind("t", KEY, 30, "", Policy(marks=0), "c", "leader")

    def run() -> Protocol[object]:
        grant = yield from protocol.acquire()
        found = yield from perform(Read("t", DATA))
        own = EntityKey(f"{grant.token:04}", grant.id)
        properties = {"Read": "" if found is None else found.etag}
        yield from perform(Write("taken", Operation(Kind.PUT, own, properties)))
        mark = Planned(Operation(Kind.PUT, EntityKey("jobs", f"seen{grant.token}")))
        yield from protocol.guard(grant, [*data(grant.token), mark])
        yield from protocol.renew(grant)
        yield from protocol.release(grant)
        return None

    return run


def start() -> World:
    simulation = Simulation()
    grant = simulation.run(LEASE.acquire())
    simulation.run(LEASE.release(grant))
    return simulation.world


def test_no_holder_of_before_passes_in_any_interleaving() -> None:
    assert explore(start(), [holder(BlobLeaseProtocol)] * 2, fenced).states_count > 20
    assert explore(World(), [holder(BlobLeaseProtocol)] * 2, fenced).states_count > 20


@pytest.mark.parametrize("mutation", [Lazy, Unconditional, Forgetful, Unguarded])
def test_each_rule_is_needed(mutation: type[BlobLeaseProtocol]) -> None:
    with pytest.raises(InvariantError):
        explore(start(), [holder(mutation)] * 2, fenced)


def test_the_service_decides_when_it_is_free() -> None:
    simulation = Simulation()
    grant = simulation.run(LEASE.acquire())
    assert (grant.token, grant.until_seconds) == (1, 30)
    for seconds in (0, 29):
        simulation.now_seconds = seconds
        with pytest.raises(LeaseTaken):
            simulation.run(LEASE.acquire())
    simulation.run(LEASE.renew(grant))
    assert grant.until_seconds == 59
    simulation.now_seconds = 58
    simulation.run(LEASE.guard(grant, data(1)))
    assert grant.until_seconds == 59, "a transaction renews nothing"
    simulation.now_seconds = 59
    other = simulation.run(LEASE.acquire())
    assert (other.token, other.id != grant.id) == (2, True)
    with pytest.raises(LeaseLost):
        simulation.run(LEASE.guard(grant, data(1)))
    with pytest.raises(LeaseLost):
        simulation.run(LEASE.renew(grant))
    simulation.run(LEASE.release(grant))
    simulation.run(LEASE.guard(other, data(2)))
    simulation.run(LEASE.release(other))
    with pytest.raises(LeaseLost):
        simulation.run(LEASE.guard(other, data(2)))
    assert simulation.run(LEASE.acquire()).token == 3


def test_a_lease_that_was_broken_is_lost_at_the_next_renewal() -> None:
    simulation = Simulation()
    grant = simulation.run(LEASE.acquire())
    simulation.now_seconds = 31
    simulation.run(perform(LeaseAcquire("c", "leader", "of another program", 30)))
    with pytest.raises(LeaseLost):
        simulation.run(LEASE.renew(grant))
    assert grant.lost
    with pytest.raises(LeaseLost):
        simulation.run(LEASE.guard(grant, data(1)))


def test_an_error_of_the_connection_is_no_loss() -> None:
    simulation = Simulation()
    grant = simulation.run(LEASE.acquire())
    simulation.runtime.failpoints = Away(10**6)
    with pytest.raises(OutcomeUnknown):
        simulation.run(LEASE.renew(grant))
    assert not grant.lost
    simulation.runtime.failpoints = NoFailpoints()
    simulation.run(LEASE.renew(grant))


def test_a_holder_of_before_may_write_until_the_row_is_taken() -> None:
    simulation = Simulation()
    grant = simulation.run(LEASE.acquire())
    simulation.now_seconds = 31

    def rival() -> None:
        failpoints, simulation.runtime.failpoints = simulation.runtime.failpoints, NoFailpoints()
        simulation.run(LEASE.guard(grant, data(grant.token)))
        simulation.runtime.failpoints = failpoints

    for number in range(3):
        simulation.runtime.failpoints = FaultAt(number, Fault.RIVAL, rival)
        other = simulation.run(LEASE.acquire())
        simulation.runtime.failpoints = NoFailpoints()
        simulation.run(LEASE.guard(other, data(other.token)))
        with pytest.raises(LeaseLost):
            simulation.run(LEASE.guard(grant, data(grant.token)))
        grant = other
        simulation.now_seconds += 31


def test_every_fault_of_taking_it() -> None:
    def attempt(fault: FaultAt) -> None:
        simulation = Simulation(failpoints=fault)
        try:
            grant = simulation.run(LEASE.acquire())
        except Crash:
            simulation.now_seconds += 31
            simulation.runtime.failpoints = NoFailpoints()
            grant = simulation.run(LEASE.acquire())
        simulation.runtime.failpoints = NoFailpoints()
        simulation.run(LEASE.guard(grant, data(grant.token)))
        with pytest.raises(LeaseTaken):
            simulation.run(LEASE.acquire())

    assert sum(1 for _ in every_fault(attempt)) >= 5 * 6


def test_every_fault_of_renewing_and_freeing_it() -> None:
    def attempt(fault: FaultAt) -> None:
        simulation = Simulation()
        grant = simulation.run(LEASE.acquire())
        simulation.runtime.failpoints = fault
        crashed = False
        try:
            simulation.run(LEASE.renew(grant))
            simulation.run(LEASE.guard(grant, data(1)))
            simulation.run(LEASE.release(grant))
        except Crash:
            crashed = True
        simulation.runtime.failpoints = NoFailpoints()
        simulation.now_seconds += 31 if crashed else 0
        assert simulation.run(LEASE.acquire()).token == 2
        with pytest.raises(LeaseLost):
            simulation.run(LEASE.guard(grant, data(1)))

    assert sum(1 for _ in every_fault(attempt)) >= 4 * 6
