"""All orders in which processes can make their engine calls: a scheduler that tries each.

Every call of an engine waits at a gate until the scheduler lets it pass; a commit waits once more before its caller
learns of it. So a run is a list of choices. `explore` runs a scenario again and again, each time with other choices,
until it has tried all that have at most so many preemptions: moments at which a process waits although it could go on.
A process that crashes passes no gate any more.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextvars import ContextVar, copy_context
from itertools import pairwise
from random import Random
from typing import NamedTuple, TypeVar

from lazulite.engine.commit import Commit
from lazulite.engine.contract import Engine, KeyRange, Slice
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.queue.catalog import Queue
from lazulite.queue.messages import Messages
from lazulite.queue.model.message import Message
from tests.fuzz.memory import MemoryEngine

from .world import START, receipt

STEPS_MAX = 200
ACTOR: ContextVar[str] = ContextVar("ACTOR")
"""Whose work it is. One process may have several actors."""

T = TypeVar("T")


class Gate:
    """A call that waits, and the actor that made it."""

    def __init__(self) -> None:
        self.actor = ACTOR.get()
        self.passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class GatedEngine:
    """An `Engine` whose calls wait for the scheduler.

    Args:
        engine: behind it.
        gates: of all actors that wait; calls outside of an actor do not.
    """

    def __init__(self, engine: Engine, gates: list[Gate]) -> None:
        self._engine = engine
        self._gates = gates

    async def _wait(self) -> None:
        if ACTOR.get("") == "":
            return
        gate = Gate()
        self._gates.append(gate)
        await gate.passed

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """See `Engine`."""
        await self._wait()
        return await self._engine.get(space, partition, row)

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Slice, None]:
        """See `Engine`."""
        await self._wait()
        async for part in self._engine.scan(space, ranges, limit, keys_only=keys_only):
            yield part

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        """See `Engine`."""
        await self._wait()
        result = await self._engine.commit(space, partition, commit)
        await self._wait()
        return result


class State(NamedTuple):
    """What a put, a get or an update left."""

    message: Message
    seconds: int
    """So many seconds later it is visible."""
    dequeued: bool
    """Whether it was a get."""


class Bench:
    """One run of a scenario.

    Args:
        choices: which of the possible steps to take, one by one; the first one after their end.
        preemptions: so many are allowed.
    """

    def __init__(self, choices: Sequence[int], preemptions: int) -> None:
        self.now = START
        self.engine = MemoryEngine(lambda: START)
        self.queue = Queue("jobs", 2000, 1)
        self.put: dict[object, Message] = {}
        self.states: list[State] = []
        self.deleted: list[object] = []
        self.unsure: set[object] = set()
        """Messages that a crashed process was about to put or delete."""
        self.taken: list[tuple[int, int]] = []
        """By step: which of how many."""
        self._choices = list(choices)
        self._preemptions = preemptions
        self._gates: list[Gate] = []
        self._closed: list[Gate] = []
        """Of crashed processes: kept, so that tasks which wait there are not destroyed before the loop ends."""
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._events: list[Callable[[], None]] = []
        self._processes: list[Messages] = []
        self._seed = 0

    def process(self, *, alone: bool = False, step: int = 0) -> Messages:
        """Return the messages of a process, whose clock is wrong by some ticks."""
        engine: Engine = GatedEngine(self.engine, self._gates)  # type: ignore[assignment]  # as far as used
        self._seed += 1
        made = Messages(engine, lambda: self.now + step, Random(self._seed), alone=alone)
        self._processes.append(made)
        return made

    def start(self, actor: str, work: Coroutine[object, object, None]) -> None:
        """Let an actor work."""
        context = copy_context()
        context.run(ACTOR.set, actor)
        self._tasks.setdefault(actor, []).append(asyncio.create_task(work, context=context))

    def event(self, event: Callable[[], None]) -> None:
        """Let something happen at some moment, once; or never, if all actors are done before."""
        self._events.append(event)

    def tick(self, seconds: float) -> Callable[[], None]:
        """Return an event: time goes by."""

        def pass_by() -> None:
            self.now += int(seconds * TICKS_PER_SECOND)

        return pass_by

    def crash(self, process: Messages, *actors: str, then: Callable[[], None] = lambda: None) -> Callable[[], None]:
        """Return an event: a process ends with its actors, and something begins."""

        def end() -> None:
            self._processes.remove(process)
            self._closed += [gate for gate in self._gates if gate.actor in actors]
            self._gates[:] = [gate for gate in self._gates if gate.actor not in actors]
            for task in (task for actor in actors for task in self._tasks.pop(actor, [])):
                task.cancel()
            then()

        return end

    async def finish(self) -> None:
        """Take steps until all actors are done."""
        last = ""
        for _ in range(STEPS_MAX):
            await self._settle()
            names = list(dict.fromkeys(gate.actor for gate in self._gates))
            if last in names:  # To go on is the first choice, and the only one without preemptions.
                names.remove(last)
                others = names if self._preemptions else []
                steps: list[str | Callable[[], None]] = [last, *others, *self._events]
            else:
                steps = [*names, *(self._events if names else [])]
            if not steps:
                break
            at = self._choose(len(steps))
            step = steps[at]
            if not isinstance(step, str):
                self._events.remove(step)
                step()
                continue
            self._preemptions -= last in [gate.actor for gate in self._gates] and step != last
            gate = next(gate for gate in self._gates if gate.actor == step)
            self._gates.remove(gate)
            gate.passed.set_result(None)
            last = step
        else:
            raise AssertionError(f"after {STEPS_MAX} steps there is no end")
        for task in [task for tasks in self._tasks.values() for task in tasks]:
            await task

    def _choose(self, count: int) -> int:
        at = len(self.taken)
        choice = self._choices[at] if at < len(self._choices) else 0
        self.taken.append((choice, count))
        return choice

    async def _settle(self) -> None:
        """Let all actors run until each waits at a gate, or is done."""
        ready = vars(asyncio.get_running_loop()).get("_ready")
        assert ready is not None, "the event loop is another one than asyncio's"
        await asyncio.sleep(0)
        while ready:  # noqa: ASYNC110 - it waits for whatever there is
            await asyncio.sleep(0)

    # --- what actors do

    async def putting(self, messages: Messages, *, ttl: int | None = None) -> None:
        """Put a message."""
        put = await messages.put(self.queue, b"", 0, ttl)
        self.put[put.id] = put
        self.states.append(State(put, 0, dequeued=False))

    async def getting(self, messages: Messages, seconds: int, *, deletes: bool = False) -> None:
        """Get a message, and perhaps delete it."""
        for got in await messages.get(self.queue, 1, seconds):
            self.states.append(State(got, seconds, dequeued=True))
            if deletes:
                await self.deleting(messages, got)

    async def updating(self, messages: Messages, message: Message, seconds: int) -> None:
        """Update a message by a receipt."""
        updated = await messages.update(self.queue, message.id, receipt(message), seconds, None)
        if updated is not None:
            self.states.append(State(updated, seconds, dequeued=False))

    async def deleting(self, messages: Messages, message: Message) -> None:
        """Delete a message by a receipt."""
        self.unsure.add(message.id)
        if await messages.delete(self.queue, message.id, receipt(message)):
            self.deleted.append(message.id)
        self.unsure.discard(message.id)

    async def sweeping(self, messages: Messages) -> None:
        """Remove expired messages."""
        await messages.remove_expired()

    # --- what must hold in the end

    async def check(self) -> None:
        """Check holds and receipts; then see with a new process which messages there are."""
        self._check_states()
        assert len(set(self.deleted)) == len(self.deleted), "a message was deleted twice"
        self.now += 10_000 * TICKS_PER_SECOND
        fresh = Messages(self.engine, lambda: self.now, Random(0))
        await fresh.remove_expired()
        peeked = {message.id for message in await fresh.peek(self.queue, 32)}
        for process in self._processes:
            seen = {message.id for message in await process.peek(self.queue, 32)}
            assert seen == peeked, f"a process finds {len(seen)} claimable messages of {len(peeked)}"
        count = await fresh.count(self.queue)
        found = [message.id for message in await fresh.get(self.queue, 32, 1)]
        assert len(set(found)) == len(found), "a message is there twice"
        assert count == len(found), f"counted {count} messages of {len(found)}"
        expected = {each.id for each in self.put.values() if each.expires > self.now} - set(self.deleted)
        assert expected - self.unsure <= set(found), "a message was lost"
        assert not set(found) & set(self.deleted), "a deleted message came back"

    def _check_states(self) -> None:
        """Each change follows the one before: a get when that was visible, with a dequeue count that is higher."""
        states = sorted(self.states, key=lambda state: (state.message.id, state.message.changes))
        for (before, _, _), (after, seconds, dequeued) in pairwise(states):
            if before.id == after.id:
                assert after.changes != before.changes, f"a message was changed twice: {before}, {after}"
                if after.changes == before.changes + 1 and dequeued:
                    assert after.visible - seconds * TICKS_PER_SECOND >= before.visible, f"{after} was got too early"
                    assert after.dequeues == before.dequeues + 1, "the dequeue count was not counted"


Scenario = Callable[[Bench], Awaitable[None]]


def runs(scenario: Scenario, preemptions: int, runs_max: int) -> Iterator[Bench]:
    """Run a scenario with all choices, and yield each run; raise what it finds."""
    choices: list[int] = []
    for _ in range(runs_max):
        bench = _run(scenario, choices, preemptions)
        yield bench
        taken = bench.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return
        choices = [choice for choice, _ in taken[:-1]] + [taken[-1][0] + 1]


def _run(scenario: Scenario, choices: Sequence[int], preemptions: int) -> Bench:
    bench = Bench(choices, preemptions)

    async def whole() -> None:
        await scenario(bench)
        await bench.finish()
        await bench.check()

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(whole())
    return bench
