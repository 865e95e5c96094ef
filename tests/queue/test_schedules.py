"""What processes do to a queue at the same time, in every order: nothing is held twice, lost, or comes back."""

from collections.abc import Callable

import pytest

from lazulite.engine.commit import Decision
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.queue.messages import Messages, NonDecreasingClock
from lazulite.queue.model import moves, shard
from lazulite.queue.model.message import Message, Receipt
from lazulite.queue.model.moves import BarrierError, MoveMessages
from lazulite.queue.model.shard import Shard
from tests.torture.queue.mutations import move_whatever_is_there

from .schedules import Bench, Scenario, State, runs

RUNS_MAX = 2500


async def setting(bench: Bench, *, ttl: int | None = None) -> Message:
    """Put a message before the scenario begins."""
    put = await bench.process().put(bench.queue, b"", 0, ttl)
    bench.put[put.id] = put
    bench.states.append(State(put, 0, dequeued=False))
    return put


async def two_consumers(bench: Bench) -> None:
    """Two processes get and delete one message; it may become visible again between."""
    await setting(bench)
    for actor in "ab":
        bench.start(actor, bench.getting(bench.process(), 5, deletes=True))
    bench.event(bench.tick(5))


async def three_consumers(bench: Bench) -> None:
    """Three processes get one message."""
    await setting(bench)
    for actor in "abc":
        bench.start(actor, bench.getting(bench.process(), 5))


async def receipts(bench: Bench) -> None:
    """A receipt updates and deletes, while another process gets the message."""
    put = await setting(bench)
    first = bench.process()
    bench.start("a", bench.updating(first, put, 0))
    bench.start("b", bench.getting(bench.process(), 5))
    bench.start("c", bench.deleting(bench.process(), put))


async def an_old_receipt(bench: Bench) -> None:
    """A receipt deletes after an update at the same time of day, to the same time of visibility."""
    put = await setting(bench)
    messages = bench.process()

    async def work() -> None:
        await bench.updating(messages, put, 0)
        updated = len(bench.states) > 1
        await bench.deleting(messages, put)
        assert not (updated and bench.deleted), "an old receipt deleted"

    bench.start("a", work())


async def one_process(bench: Bench) -> None:
    """Puts and gets of one process, which raises its floor; and time goes by."""
    messages = bench.process(alone=True)
    for actor in "ab":
        bench.start(actor, bench.putting(messages, ttl=50_000))
    bench.start("c", getting_twice(bench, messages))
    bench.event(bench.tick(1))


async def getting_twice(bench: Bench, messages: Messages) -> None:
    """Get, and get again; in the end, what was put is claimable for the process that raised the floor."""
    for _ in range(2):
        await bench.getting(messages, 5)


async def two_processes(bench: Bench) -> None:
    """One process puts, with a clock behind; another one gets, and raises floor and barrier."""
    await setting(bench)
    behind, messages = bench.process(step=-4 * TICKS_PER_SECOND), bench.process()

    async def consume() -> None:
        for _ in range(3):
            await bench.getting(messages, 1, deletes=True)
            bench.now += 3 * TICKS_PER_SECOND

    bench.start("a", bench.putting(behind))
    bench.start("b", consume())


async def short_lives(bench: Bench) -> None:
    """Messages expire, and others do not: the floor of one process rises above the former."""
    messages = bench.process(alone=True)
    bench.start("a", bench.putting(messages, ttl=2))
    bench.start("b", bench.putting(messages))
    bench.start("c", getting_twice(bench, messages))
    bench.event(bench.tick(5))


async def a_longer_life(bench: Bench) -> None:
    """One process puts what expires soon, raises the barrier and then gets; another one puts a message that lasts."""
    await setting(bench, ttl=2)
    messages = bench.process()

    async def work() -> None:
        for _ in range(2):
            await bench.putting(messages, ttl=2)
            bench.now += 3 * TICKS_PER_SECOND
        await bench.getting(messages, 1)

    bench.start("a", bench.putting(bench.process()))
    bench.start("b", work())


async def a_crash(bench: Bench) -> None:
    """A process crashes at any moment; the next one begins with a clock that was set back."""
    messages = bench.process(alone=True)

    async def work() -> None:
        for _ in range(3):
            await bench.putting(messages)
        for _ in range(2):
            bench.now += 3 * TICKS_PER_SECOND
            await bench.getting(messages, 1, deletes=True)

    def again() -> None:
        later = bench.process(alone=True, step=-3600 * TICKS_PER_SECOND)
        bench.start("b", bench.putting(later))

    bench.start("a", work())
    bench.event(bench.crash(messages, "a", then=again))


async def sweeps(bench: Bench) -> None:
    """Two processes sweep, while a third one puts a message that expires soon."""
    await setting(bench, ttl=1)
    bench.now += 20 * TICKS_PER_SECOND
    for actor in "ab":
        bench.start(actor, bench.sweeping(bench.process()))
    bench.start("c", bench.putting(bench.process(), ttl=2))


async def a_late_put(bench: Bench) -> None:
    """A put waits between scheduling its shard and its commit, until the shard is due."""
    await setting(bench)
    await a_late_first_put(bench)


async def a_late_first_put(bench: Bench) -> None:
    """As before, for the first message of a shard."""
    messages = bench.process()

    def sweep() -> None:
        bench.now += 20 * TICKS_PER_SECOND
        bench.start("a", bench.sweeping(messages))

    bench.start("c", bench.putting(bench.process(), ttl=2))
    bench.event(sweep)


async def a_crash_in_a_sweep(bench: Bench) -> None:
    """A process crashes while it sweeps, or while it puts."""
    await setting(bench, ttl=1)
    await setting(bench, ttl=90)
    bench.now += 20 * TICKS_PER_SECOND
    messages = bench.process()
    bench.start("a", bench.sweeping(messages))
    bench.start("c", bench.putting(bench.process(), ttl=2))
    bench.event(bench.crash(messages, "a"))


async def expiring(bench: Bench) -> None:
    """A message expires while it is got, updated and swept."""
    put = await setting(bench, ttl=15)
    bench.now += 14 * TICKS_PER_SECOND
    bench.start("a", bench.getting(bench.process(), 5, deletes=True))
    bench.start("b", bench.updating(bench.process(), put, 0))
    bench.start("c", bench.sweeping(bench.process()))
    bench.event(bench.tick(30))


SCENARIOS: list[tuple[Scenario, int]] = [
    (two_consumers, 2),
    (three_consumers, 2),
    (receipts, 3),
    (an_old_receipt, 3),
    (one_process, 2),
    (two_processes, 2),
    (short_lives, 2),
    (a_longer_life, 2),
    (a_crash, 2),
    (sweeps, 2),
    (a_late_put, 2),
    (a_late_first_put, 2),
    (a_crash_in_a_sweep, 2),
    (expiring, 2),
]
"""And the preemptions that are tried."""


@pytest.mark.parametrize(("scenario", "preemptions"), SCENARIOS, ids=lambda each: getattr(each, "__name__", str(each)))
def test_every_order(scenario: Scenario, preemptions: int) -> None:
    count = sum(1 for _ in runs(scenario, preemptions, RUNS_MAX))
    assert count > 1 or scenario is an_old_receipt


def _floor_at_the_present(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor is raised to the present, whatever is in flight or comes from other processes."""
    monkeypatch.setattr(Shard, "_lowest_new", lambda self, state, now: now)


def _accept_below_the_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit writes rows below the barrier."""
    monkeypatch.setattr(moves, "BarrierError", BarrierError)
    decide = MoveMessages.decide

    def accept(self: MoveMessages, current: list[bytes | None], timestamp: int) -> object:
        self.lowest = max(self.lowest, moves.read_state(current[0]).barrier)
        return decide(self, current, timestamp)

    monkeypatch.setattr(MoveMessages, "decide", accept)
    monkeypatch.setattr(Shard, "present", lambda self: self._present())


def _barrier_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process believes in a barrier that it has not stored."""
    decide = MoveMessages.decide

    def without(self: MoveMessages, current: list[bytes | None], timestamp: int) -> object:
        (changes, after, _), before = decide(self, current, timestamp), moves.read_state(current[0])
        if moves.STATE_ROW not in changes:
            return Decision(changes, after)
        stored = after._replace(barrier=before.barrier, floor=before.floor)
        return Decision({**changes, moves.STATE_ROW: stored.value}, after)

    monkeypatch.setattr(MoveMessages, "decide", without)


def _lifetime_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard does not know how long its messages last."""
    make = MoveMessages.__init__

    def without(self: MoveMessages, *arguments: object) -> None:
        make(self, *arguments)  # type: ignore[arg-type]  # as there
        self.lifetime = 0

    monkeypatch.setattr(MoveMessages, "__init__", without)


def _lifetime_not_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process raises the barrier that it knows, and keeps an old lifetime."""
    learn = Shard._learn

    def without(self: Shard, state: moves.ShardState) -> None:
        learn(self, state if self._state is None else state._replace(lifetime=self._state.lifetime))

    monkeypatch.setattr(Shard, "_learn", without)


def _row_before_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit moves a message from wherever the caller believes it to be."""
    monkeypatch.setattr(MoveMessages, "decide", MoveMessages.decide)
    move_whatever_is_there()


def _changes_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receipt need not name the number of changes."""

    async def find(self: Messages, shard: Shard, message: object, receipt: Receipt) -> Message | None:
        return await shard.find(message, receipt.visible)  # type: ignore[arg-type]  # its id

    monkeypatch.setattr(Messages, "_find", find)


def _sweeps_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A put does not notice that its shard was swept after it was scheduled."""
    begin = shard._begin

    def uncounted(current: list[bytes | None], timestamp: int) -> object:
        changes, begun, _ = begin(current, timestamp)
        if begun is None:
            return Decision(changes, begun)
        state = begun._replace(sweeps=0)
        return Decision({moves.STATE_ROW: state.value}, state)

    monkeypatch.setattr(shard, "_begin", uncounted)


def _dequeues_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A get does not count."""
    monkeypatch.setattr(Message, "claimed", lambda self, visible: self.moved(visible))


def _clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process takes any time for the present."""
    monkeypatch.setattr(NonDecreasingClock, "__call__", lambda self: self._clock())


async def a_clock_set_back(bench: Bench) -> None:
    """The clock of a process is set back while it puts and gets."""
    messages = bench.process(alone=True)
    bench.start("a", bench.putting(messages))
    bench.start("c", getting_twice(bench, messages))
    bench.event(bench.tick(-2))


MUTATIONS: list[tuple[Callable[[pytest.MonkeyPatch], None], Scenario]] = [
    (_row_before_not_compared, two_consumers),
    (_row_before_not_compared, receipts),
    (_floor_at_the_present, one_process),
    (_floor_at_the_present, two_processes),
    (_accept_below_the_barrier, a_crash),
    (_barrier_not_stored, two_processes),
    (_lifetime_not_stored, short_lives),
    (_lifetime_not_learned, a_longer_life),
    (_changes_not_compared, an_old_receipt),
    (_sweeps_not_counted, a_late_put),
    (_dequeues_not_counted, two_consumers),
    (_clock_steps_back, a_clock_set_back),
]


PROBLEMS = "claimable|lost|too early|twice|counted|came back|an old receipt|not a shard"
"""What the bench says, and the server of a shard whose floor is above its barrier."""


def test_a_clock_that_is_set_back_hides_nothing() -> None:
    assert sum(1 for _ in runs(a_clock_set_back, 2, RUNS_MAX)) > 1


@pytest.mark.parametrize(
    ("mutation", "scenario"), MUTATIONS, ids=lambda each: getattr(each, "__name__", str(each)).strip("_")
)
def test_mutation_is_found(
    mutation: Callable[[pytest.MonkeyPatch], None], scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises((AssertionError, ValueError), match=PROBLEMS):
        for _ in runs(scenario, 2, RUNS_MAX):
            pass
