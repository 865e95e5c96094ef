"""Two holders never both pass `guard`, whatever the clock says; a lease is lost at a definite answer only."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from lazulite_patterns import EntityFormatError
from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.failpoints import NoFailpoints
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation, Read, Stored, Write
from lazulite_patterns.leases import Grant, LeaseLost, LeaseTaken
from lazulite_patterns.leases.protocol import LeaseProtocol, number
from lazulite_patterns.outcomes import Conflict, OutcomeUnknown, Policy, Unavailable
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

KEY = EntityKey("jobs", "lease")
DATA = EntityKey("jobs", "data")
LEASE = LeaseProtocol("t", KEY, 30, "host-1")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Hasty(LeaseProtocol):
    """Takes every lease for free: no clock is worse. The fence alone has to hold."""

    def _is_free(self, row: Stored) -> bool:
        return True


def data(token: int) -> list[Planned]:
    return [Planned(Operation(Kind.PUT, DATA, {"Token": token}))]


class Unconditional(Hasty):
    """Writes its row whatever is there."""

    def _put(self, grant: Grant, row: Stored | None, grant_id: str, planned: Sequence[Planned]) -> Protocol[None]:
        own = Planned(Operation(Kind.PUT, self.key, {"Id": grant_id, "Token": grant.token}))
        yield from write(self.table, [own, *planned], self.policy)


class Forgetful(Hasty):
    """Takes every row for its own."""

    def _is_of(self, row: Stored, grant: Grant) -> bool:
        return True


class Unguarded(Hasty):
    """Looks at the row first, and then writes."""

    def guard(self, grant: Grant, planned: Sequence[Planned]) -> Protocol[None]:
        yield from self._own(grant)
        yield from write(self.table, planned, self.policy)


def never_back(world: World) -> None:
    """Tokens of guarded writes never go back: each writes a row of its token, too, which is kept."""
    row, written = world.entity("t", KEY), world.entity("t", DATA)
    if row is None or written is None:
        return
    latest = max(int(each.key.row_key[4:]) for each in world.entities("t") if each.key.row_key.startswith("seen"))
    assert int(str(written.properties["Token"])) == latest, "a holder passed after another one had"
    assert latest <= number(row, "Token"), "a guarded write without its grant"


def seen(kind: type[LeaseProtocol]) -> Callable[[], Protocol[object]]:
    protocol = kind("t", KEY, 30, policy=Policy(marks=0))

    def run() -> Protocol[object]:
        grant = yield from protocol.acquire()
        for _ in range(2):
            mark = Planned(Operation(Kind.PUT, EntityKey("jobs", f"seen{grant.token}")))
            yield from protocol.guard(grant, [*data(grant.token), mark])
        yield from protocol.renew(grant)
        yield from protocol.release(grant)
        return None

    return run


def test_an_old_holder_never_passes_in_any_interleaving() -> None:
    assert explore(World(), [seen(Hasty)] * 3, never_back).states_count > 20


@pytest.mark.parametrize("mutation", [Unconditional, Forgetful, Unguarded])
def test_each_rule_is_needed(mutation: type[LeaseProtocol]) -> None:
    with pytest.raises(InvariantError):
        explore(World(), [seen(mutation)] * 2, never_back)


class Timed(Simulation):
    """A simulation whose rows have times of the service."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_seconds = 0.0
        self._written: dict[EntityKey, datetime] = {}

    @property
    def date(self) -> datetime:
        return EPOCH + timedelta(seconds=self.now_seconds + self.ahead_seconds)

    def perform(self, effect: Effect[object]) -> object:
        before = self.world
        try:
            answer = super().perform(effect)
        finally:
            if self.world is not before and isinstance(effect, Write | Batch):
                operations = effect.operations if isinstance(effect, Batch) else (effect.operation,)
                self._written |= {each.key: self.date for each in operations}
        if isinstance(effect, Read) and isinstance(answer, Stored):
            return answer._replace(timestamp=self._written[effect.key], date=self.date.replace(microsecond=0))
        return answer


def test_a_lease_is_free_after_its_seconds_by_the_clock_of_the_service() -> None:
    simulation = Timed()
    grant = simulation.run(LEASE.acquire())
    assert (grant.token, grant.until_seconds) == (1, 30)
    for seconds in (0, 29.5, 30.9):
        simulation.now_seconds = seconds
        with pytest.raises(LeaseTaken, match="host-1"):
            simulation.run(LEASE.acquire())
    simulation.now_seconds = 31
    other = simulation.run(LEASE.acquire())
    assert (other.token, other.id != grant.id) == (2, True)
    with pytest.raises(LeaseLost):
        simulation.run(LEASE.guard(grant, data(1)))
    assert grant.lost
    assert simulation.world.entity("t", DATA) is None
    simulation.run(LEASE.guard(other, data(2)))


@pytest.mark.parametrize("seconds", ["x", float("nan"), b"", True])
def test_a_row_whose_seconds_another_program_damaged_is_an_error(seconds: object) -> None:
    simulation = Timed()
    simulation.run(LEASE.acquire())
    simulation.perform(Write("t", Operation(Kind.MERGE, KEY, {"Seconds": seconds})))
    simulation.now_seconds = 60
    with pytest.raises(EntityFormatError, match="Seconds"):
        simulation.run(LEASE.acquire())


def test_renewals_and_guards_keep_it_and_a_release_frees_it() -> None:
    simulation = Timed()
    grant = simulation.run(LEASE.acquire())
    for write_of_holder in (LEASE.renew(grant), LEASE.guard(grant, data(1)), LEASE.renew(grant)):
        simulation.now_seconds += 25
        simulation.run(write_of_holder)
        assert grant.until_seconds == simulation.now_seconds + 30
        with pytest.raises(LeaseTaken):
            simulation.run(LEASE.acquire())
    simulation.run(LEASE.release(grant))
    assert grant.lost
    assert simulation.run(LEASE.acquire()).token == 2
    simulation.run(LEASE.release(grant))
    with pytest.raises(LeaseTaken):
        simulation.run(LEASE.acquire())


class Away:
    """Failpoints: the service does not answer for some requests."""

    def __init__(self, count: int) -> None:
        self.count = count

    def before(self, effect: Effect[object]) -> None:
        self.count -= 1
        if self.count >= 0:
            raise ResultUnknown("away")

    def after(self, effect: Effect[object]) -> None: ...


def test_an_error_of_the_connection_is_no_loss() -> None:
    simulation = Timed()
    grant = simulation.run(LEASE.acquire())
    simulation.runtime.failpoints = Away(10**6)
    with pytest.raises((OutcomeUnknown, Unavailable)):
        simulation.run(LEASE.renew(grant))
    assert not grant.lost
    simulation.runtime.failpoints = NoFailpoints()
    simulation.run(LEASE.renew(grant))
    simulation.run(LEASE.guard(grant, data(1)))


def test_a_conflict_of_the_data_is_no_loss() -> None:
    simulation = Timed()
    grant = simulation.run(LEASE.acquire())
    insert = [Planned(Operation(Kind.PUT, EntityKey("jobs", "a"))), Planned(Operation(Kind.INSERT, DATA))]
    simulation.run(LEASE.guard(grant, insert))
    with pytest.raises(Conflict) as conflict:
        simulation.run(LEASE.guard(grant, insert))
    assert (conflict.value.index, grant.lost) == (1, False)
    simulation.run(LEASE.guard(grant, data(1)))


def test_two_writes_of_one_holder_do_not_lose_it() -> None:
    simulation = Timed()
    grant = simulation.run(LEASE.acquire())
    stale = Grant(grant.id, grant.token, grant.until_seconds, row=grant.row)
    simulation.run(LEASE.renew(grant))
    simulation.run(LEASE.guard(stale, data(1)))
    simulation.run(LEASE.renew(grant))


def test_a_guarded_write_under_every_fault_is_done_once() -> None:
    def attempt(fault: FaultAt) -> None:
        simulation = Timed()
        grant = simulation.run(LEASE.acquire())
        simulation.runtime.failpoints = fault
        add = [Planned(Operation(Kind.INSERT, DATA, {"N": 1}))]
        try:
            simulation.run(LEASE.guard(grant, add))
        except Crash:
            simulation.runtime.failpoints = NoFailpoints()
            simulation.now_seconds += 31
            grant = simulation.run(LEASE.acquire())
            with pytest.raises(LeaseTaken):
                simulation.run(LEASE.acquire())
            if simulation.world.entity("t", DATA) is None:
                assert fault.fault is Fault.CRASH_BEFORE
                simulation.run(LEASE.guard(grant, add))
        assert simulation.world.entity("t", DATA) is not None

    assert sum(1 for _ in every_fault(attempt)) >= 6


def test_every_fault_of_taking_it() -> None:
    def attempt(fault: FaultAt) -> None:
        simulation = Timed()
        simulation.runtime.failpoints = fault
        try:
            grant = simulation.run(LEASE.acquire())
        except Crash:
            simulation.runtime.failpoints = NoFailpoints()
            simulation.now_seconds += 31
            grant = simulation.run(LEASE.acquire())
        simulation.runtime.failpoints = NoFailpoints()
        simulation.run(LEASE.guard(grant, data(grant.token)))
        with pytest.raises(LeaseTaken):
            simulation.run(LEASE.acquire())

    assert sum(1 for _ in every_fault(attempt)) >= 2 * 6
