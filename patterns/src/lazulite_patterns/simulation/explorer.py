"""Every interleaving of several protocols, with a crash possible at each step: a model checker.

A protocol is deterministic in the answers that it gets. So a process is its list of answers, a state is the world and
these lists, and a state that was seen is not explored again.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from lazulite_patterns.effects.ambient import Draw, NewId, Now, Sleep, UtcNow
from lazulite_patterns.effects.blobs import BlobEffect, BlobFacts, BlobsFound
from lazulite_patterns.effects.calls import Meanwhile
from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.queues import QueueEffect
from lazulite_patterns.effects.tables import Batch, Found, Page, Read, Stored, Write
from lazulite_patterns.simulation.world import Request, World

Process: TypeAlias = Callable[[], Protocol[object]]


class Step(NamedTuple):
    """What a process got: an answer, or an error."""

    answer: object
    error: Rejected | None = None


_START = 0
"""The history of a process that got no answer yet."""
_CRASHED = -1
"""The history of a process that crashed."""


class _State(NamedTuple):
    world: World
    histories: tuple[int, ...]
    """What each process got so far, by the number of that history."""
    crashes: int


class Explored(NamedTuple):
    """What `explore` went through."""

    states_count: int
    ends_count: int


class InvariantError(AssertionError):
    """An invariant does not hold after these steps of processes, by their numbers; `-1` and below are crashes."""

    def __init__(self, path: tuple[int, ...], error: AssertionError) -> None:
        """Take the path, and what the invariant said."""
        super().__init__(f"after the steps {path}: {error}")
        self.path = path


def explore(
    world: World,
    processes: Sequence[Process],
    invariant: Callable[[World], None],
    *,
    crashes_max: int = 1,
    states_max: int = 1_000_000,
) -> Explored:
    """Explore every interleaving of processes, each of which may crash before any of its effects.

    Args:
        world: the tables at the start.
        processes: each makes its protocol anew; it must behave the same for the same answers.
        invariant: called with each state's world; raises AssertionError where it does not hold.
        crashes_max: processes that crash at most.
        states_max: states after which RuntimeError is raised: what was not explored is not known.

    Raises:
        InvariantError: the invariant does not hold.
    """
    known = _Histories(processes)
    seen: set[object] = set()
    stack: list[tuple[_State, tuple[int, ...]]] = [(_State(world, (_START,) * len(processes), 0), ())]
    ends = 0
    while stack:
        state, path = stack.pop()
        key = (state.world.state, state.histories, state.crashes)
        if key in seen:
            continue
        seen.add(key)
        if len(seen) > states_max:
            raise RuntimeError(f"more than {states_max} states")
        try:
            invariant(state.world)
        except AssertionError as error:
            raise InvariantError(path, error) from error
        following = list(_following(state, known, crashes_max))
        stack += [(after, (*path, number)) for number, after in following]
        ends += not following
    return Explored(len(seen), ends)


_DEFECTS = (AssertionError, AttributeError, LookupError, NameError, TypeError)
"""Errors of a program, which no protocol raises on purpose: they must not pass for the end of a process."""


def _following(state: _State, known: "_Histories", crashes_max: int) -> Iterator[tuple[int, _State]]:
    """Yield the states after one step of a process, and after a crash of one."""
    for number, history in enumerate(state.histories):
        if history == _CRASHED or (effect := known.next_effect(number, history)) is None:
            continue
        after, step = _performed(state.world, effect)
        gone = known.extended(number, history, step)
        yield number, _State(after, _with(state.histories, number, gone), state.crashes)
        if state.crashes < crashes_max:
            yield -1 - number, _State(state.world, _with(state.histories, number, _CRASHED), state.crashes + 1)


class _Histories:
    """Numbers each list of answers of each process, and keeps what the process asks for after it."""

    def __init__(self, processes: Sequence[Process]) -> None:
        self._processes = processes
        self._steps: list[tuple[Step, ...]] = [()]
        self._numbers: dict[object, int] = {}
        self._effects: dict[tuple[int, int], Request | None] = {}

    def next_effect(self, number: int, history: int) -> Request | None:
        """Return what a process asks for; None if it ended."""
        if (number, history) not in self._effects:
            self._effects[number, history] = _next_effect(self._processes[number], self._steps[history], number)
        return self._effects[number, history]

    def extended(self, number: int, history: int, step: Step) -> int:
        """Return the number of a history with one more answer."""
        key = (number, history, _step_key(step))
        if key not in self._numbers:
            self._numbers[key] = len(self._steps)
            self._steps.append((*self._steps[history], step))
        return self._numbers[key]


def _next_effect(process: Process, answers: tuple[Step, ...], number: int) -> Request | None:
    """Return the effect that a process asks for after these answers; None if it ended."""
    protocol = _flat(process())
    ids = 0
    try:
        effect: Effect[object] = protocol.send(None)
        remaining = iter(answers)
        while True:
            if isinstance(effect, Read | Write | Batch | Page | QueueEffect | BlobEffect):
                step = next(remaining, None)
                if step is None:
                    protocol.close()
                    return effect
                effect = protocol.send(step.answer) if step.error is None else protocol.throw(step.error)
            else:
                ids += 1
                effect = protocol.send(_ambient(effect, number, ids))
    except _DEFECTS:
        raise
    except Exception:  # noqa: BLE001 - the process ended by an error, such as a conflict.
        return None


def _flat(protocol: Protocol[object]) -> Protocol[object]:
    """Return a protocol that runs the protocols within it itself. What is beside them is left out."""
    answer: object = None
    error: Exception | None = None
    while True:
        try:
            effect = protocol.send(answer) if error is None else protocol.throw(error)
        except StopIteration as stop:
            return stop.value
        answer, error = None, None
        try:
            answer = (yield from _flat(effect.protocol)) if isinstance(effect, Meanwhile) else (yield effect)
        except Exception as failed:  # noqa: BLE001 - the protocol sees every error of its effect.
            error = failed


def _ambient(effect: Effect[object], process: int, number: int) -> object:
    if isinstance(effect, Now | Draw):
        return 0.0
    if isinstance(effect, UtcNow):
        return datetime(2026, 1, 1, tzinfo=UTC)
    if isinstance(effect, NewId):
        return f"{process:08x}{number:08x}"
    if isinstance(effect, Sleep):
        return None
    raise TypeError(f"{type(effect).__name__} cannot be explored")


def _performed(world: World, effect: Request) -> tuple[World, Step]:
    try:
        after, answer = world.perform(effect)
    except Rejected as error:
        return world, Step(None, error)
    return after, Step(answer)


def _with(histories: tuple[int, ...], number: int, own: int) -> tuple[int, ...]:
    return (*histories[:number], own, *histories[number + 1 :])


def _step_key(step: Step) -> object:
    if step.error is not None:
        return step.error.code
    answer = step.answer
    if isinstance(answer, Stored):
        return answer.etag, frozenset(answer.properties.items())
    if isinstance(answer, Found):
        return *((each.etag, frozenset(each.properties.items())) for each in answer.entities), answer.continuation
    plain = isinstance(answer, str | bytes | tuple | None) and not isinstance(answer, BlobFacts | BlobsFound)
    return answer if plain else repr(answer)
