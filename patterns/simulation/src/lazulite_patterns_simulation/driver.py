"""Run protocols against tables, queues and blobs in memory, with a clock of their own. A seed repeats a run exactly."""

from contextlib import suppress
from random import Random
from typing import TypeVar

from lazulite_patterns.effects.blobs import BlobEffect
from lazulite_patterns.effects.calls import Call, WithHeartbeat, WithTimeout
from lazulite_patterns.effects.drive import drive
from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.failpoints import Failpoints, NoFailpoints
from lazulite_patterns.effects.queues import QueueEffect
from lazulite_patterns.effects.runtime import Gather, Runtime, Sleep
from lazulite_patterns.effects.tables import Batch, Page, Read, Write
from lazulite_patterns_simulation.world import World

T = TypeVar("T")


class Simulation:
    """A driver in memory.

    Attributes:
        world: the tables now.
        now_seconds: the time; a `Sleep` moves it.
    """

    def __init__(self, seed: int = 0, failpoints: Failpoints | None = None) -> None:
        """Begin with no entities, at second 0."""
        self.world = World()
        self.now_seconds = 0.0
        self._random = Random(seed)  # noqa: S311 - a seed repeats a run
        self._ids = 0
        self.runtime = Runtime(
            lambda: self.now_seconds, self._random.random, self._new_id, failpoints or NoFailpoints()
        )

    def run(self, protocol: Protocol[T]) -> T:
        """Run a protocol to its end, and return what it returns or raise what it raises."""
        return drive(protocol, self.perform)

    def perform(self, effect: Effect[object]) -> object:
        """Perform one effect."""
        if isinstance(effect, Sleep):
            self.now_seconds += effect.seconds
            return None
        if isinstance(effect, WithTimeout):
            return self.perform(effect.effect)
        if isinstance(effect, Gather):
            return self._gather(effect)
        if isinstance(effect, WithHeartbeat):
            return self._with_heartbeat(effect)
        if not isinstance(effect, Read | Write | Batch | Page | QueueEffect | BlobEffect | Call):
            return self.runtime.answer(effect)
        self.runtime.failpoints.before(effect)
        if isinstance(effect, Call):
            answer = effect.function(*effect.arguments)
        else:
            self.world, answer = self.world.perform(effect, self.now_seconds)
        self.runtime.failpoints.after(effect)
        return answer

    def _with_heartbeat(self, effect: WithHeartbeat[object]) -> object:
        due = self.now_seconds + effect.every_seconds

        def perform(inner: Effect[object]) -> object:
            nonlocal due
            answer = self.perform(inner)
            while due <= self.now_seconds:
                due += effect.every_seconds
                with suppress(Exception):
                    self.run(effect.heartbeat())
            return answer

        return drive(effect.protocol, perform)

    def _gather(self, effect: Gather[object]) -> list[object]:
        answers: list[object] = []
        errors: list[Exception] = []
        for protocol in effect.protocols:
            try:
                answers.append(self.run(protocol))
            except Exception as error:  # noqa: BLE001 - raised when all ended, as by the other drivers.
                errors.append(error)
        if errors:
            raise errors[0]
        return answers

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:016x}"
