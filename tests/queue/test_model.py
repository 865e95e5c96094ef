"""A queue against a model of one, with a clock that the model sets: at least once, in time, by the latest receipt.

It runs on each engine of the contract's tests. Where the engine keeps rows, a restart opens it again.
"""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lazulite.engine.contract import Engine
from lazulite.queue.messages import Messages
from lazulite.queue.model.expirations import SLOT_TICKS
from lazulite.queue.model.message import Message
from tests.engine.conftest import ENGINES, EngineFactory

from .world import START, World, receipt

SLOW_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without shrinking, which the store in memory does for all of them."""
FULL = 6
"""A queue with more messages may be cleared."""


@dataclass
class Expected:
    """A message of the model: its latest state, whose receipt counts."""

    latest: Message


class QueueMachine(RuleBasedStateMachine):
    """Puts, gets, updates, deletes, lets time pass, clears, restarts, and takes turns with another process.

    `kind` makes the engine; `has_processes`: several processes may have one open, each by itself.
    """

    kind: Callable[[Path], EngineFactory]
    dequeues: Counter[int]
    """How many messages were got for the n-th time, in all runs."""
    has_processes: bool
    receipts: Bundle[Message] = Bundle("receipts")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = Path(tempfile.mkdtemp(prefix="lazulite-queue-model-"))
        self.factory = type(self).kind(self.directory)
        self.engines: list[Engine] = []
        self.expected: dict[object, Expected] = {}
        self.restarts = 0
        self.other: Messages | None = None

    @initialize(target=receipts, shards=st.sampled_from([1, 3]), alone=st.booleans(), number=st.integers(0, 8))
    def begin(self, shards: int, alone: bool, number: int) -> MultipleResults[Message]:
        self.world = World(self.opened(), shards, alone=alone and not self.has_processes)
        return multiple(*(self.put_one(str(each), 0, None) for each in range(number)))

    def teardown(self) -> None:
        self.close()
        self.runner.close()
        shutil.rmtree(self.directory)

    def opened(self) -> Engine:
        self.engines.append(self.factory.open(lambda: START))
        return self.engines[-1]

    def close(self) -> None:
        while self.engines:
            self.runner.run(self.engines.pop().close())

    def alive(self) -> list[Message]:
        return [each.latest for each in self.expected.values() if each.latest.expires > self.world.now]

    def visible(self) -> list[Message]:
        return [message for message in self.alive() if message.visible <= self.world.now]

    def is_latest(self, message: Message) -> bool:
        found = self.expected.get(message.id)
        return found is not None and found.latest == message and message.expires > self.world.now

    @rule(
        target=receipts,
        delay=st.integers(0, 5),
        more=st.none() | st.integers(1, 20),
        texts=st.lists(st.text("ab", max_size=2), min_size=1, max_size=4),
    )
    def put(self, delay: int, more: int | None, texts: list[str]) -> MultipleResults[Message]:
        return multiple(*(self.put_one(text, delay, more) for text in texts))

    def put_one(self, text: str, delay: int, more: int | None) -> Message:
        message = self.runner.run(self.world.put(text, delay, None if more is None else delay + more))
        assert message.inserted == self.world.now
        self.expected[message.id] = Expected(message)
        return message

    @rule(target=receipts, count=st.integers(1, 4), timeout=st.integers(1, 20), waits=st.booleans())
    def get(self, count: int, timeout: int, waits: bool) -> MultipleResults[Message] | Message:
        if waits and not self.visible():
            self.world.now = min((message.visible for message in self.alive()), default=self.world.now)
        before = {message.id: message for message in self.visible()}
        got = self.runner.run(self.world.get(count, timeout))
        assert len(got) == min(count, len(before))
        taken: list[int] = []
        for message in got:
            old = before.pop(message.id)
            assert (message.text, message.dequeues) == (old.text, old.dequeues + 1)
            self.expected[message.id].latest = message
            self.dequeues[message.dequeues] += 1
            taken.append(old.visible)
        if self.world.queue.shards == 1:
            assert taken == sorted(taken)
            assert max(taken, default=0) <= min((message.visible for message in before.values()), default=2**63)
        return multiple(*got)

    @rule(target=receipts, timeout=st.integers(1, 3))
    def get_again(self, timeout: int) -> MultipleResults[Message] | Message:
        """Get a message, wait for as long as it is hidden, and get one."""
        self.get(1, timeout, True)
        self.world.advance(timeout + 1)
        return self.get(1, timeout, True)

    @rule(count=st.integers(1, 4))
    def peek(self, count: int) -> None:
        found = self.runner.run(self.world.messages.peek(self.world.queue, count))
        assert len(found) == min(count, len(self.visible()))
        assert all(self.is_latest(message) for message in found)

    @rule(target=receipts, message=receipts, timeout=st.integers(0, 20), text=st.none() | st.just(b"new"))
    def update(self, message: Message, timeout: int, text: bytes | None) -> MultipleResults[Message] | Message:
        world = self.world
        if self.is_latest(message) and message.expires < world.now + timeout * 10_000_000:
            return multiple()
        updated = self.runner.run(world.messages.update(world.queue, message.id, receipt(message), timeout, text))
        assert (updated is not None) == self.is_latest(message)
        if updated is None:
            return multiple()
        assert updated.dequeues == message.dequeues
        self.expected[message.id].latest = updated
        return updated

    @rule(message=consumes(receipts))
    def delete(self, message: Message) -> None:
        assert self.runner.run(self.world.delete(message)) == self.is_latest(message)
        if self.is_latest(message):
            del self.expected[message.id]

    @rule(seconds=st.sampled_from([0.0, 0.5, 1, 3, 10, 30, 60]))
    def advance(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule()
    def remove_expired(self) -> None:
        self.runner.run(self.world.messages.remove_expired())
        left = [each.latest for each in self.expected.values() if each.latest.expires > self.world.now - SLOT_TICKS]
        assert len(self.alive()) <= self.runner.run(self.world.count()) <= len(left)

    @precondition(lambda self: len(self.expected) > FULL)
    @rule()
    def clear(self) -> None:
        old = self.world.queue
        self.world.queue = replace(old, space=old.space + 1)
        self.runner.run(self.world.engine.drop(old.space))
        self.expected = {}

    @precondition(lambda self: self.expected)
    @rule()
    def restart(self) -> None:
        self.restarts += 1
        if self.factory.keeps:
            self.close()
            self.world.engine = self.opened()
        self.world.restart(self.restarts)
        self.other = None

    @precondition(lambda self: not self.world.alone)
    @rule()
    def switch(self) -> None:
        """Go on with another process on the same store, which keeps what it knew."""
        self.restarts += 1
        self.world.messages, self.other = self.other or self.another(), self.world.messages

    def another(self) -> Messages:
        engine = self.opened() if self.has_processes else self.world.engine
        return Messages(engine, lambda: self.world.now, Random(self.restarts))


@pytest.mark.parametrize("kind", ENGINES)
def test_a_queue_equals_its_model(kind: str) -> None:
    dequeues = Counter[int]()
    attributes = {
        "kind": staticmethod(ENGINES[kind]),
        "has_processes": kind.startswith("postgres"),
        "dequeues": dequeues,
    }
    run_state_machine_as_test(
        type("Machine", (QueueMachine,), attributes),
        settings=settings(
            max_examples=15,
            stateful_step_count=50,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            phases=tuple(Phase) if "memory" in kind else SLOW_PHASES,
        ),
    )
    assert dequeues[2] > 0, "no message came again"
