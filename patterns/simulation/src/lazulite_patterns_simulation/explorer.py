"""A model checker: every interleaving of several protocols, with crashes, lost answers, late requests and deadlines.

Invariants: a protocol is deterministic in the answers that it gets, so a process is its list of answers. A state is the
world, these lists, the requests that have not arrived, and what may still go wrong. Two states are the same only if all
of that is equal, to the type and the age of each value. A state that was seen is not explored again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

from lazulite_patterns.effects.ambient import Draw, Gather, NewId, Now, Sleep, UtcNow
from lazulite_patterns.effects.blobs import (
    Append,
    AppendCreate,
    BlobDelete,
    BlobEffect,
    BlobPut,
    BlobSetMetadata,
    LeaseAcquire,
    LeaseRelease,
    LeaseRenew,
)
from lazulite_patterns.effects.calls import WithHeartbeat, WithTimeout
from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.queues import Extend, QueueEffect, Receive, Remove, Send
from lazulite_patterns.effects.tables import Batch, Page, Read, Write
from lazulite_patterns_simulation.world import Request, World, frozen

Process: TypeAlias = Callable[[], Protocol[object]]

_REQUESTS = (Read, Write, Batch, Page, QueueEffect, BlobEffect)
_WRITES = (
    *(Write, Batch, Send, Receive, Extend, Remove, BlobPut, AppendCreate, Append, BlobSetMetadata, BlobDelete),
    *(LeaseAcquire, LeaseRenew, LeaseRelease),
)
"""Effects that change the world: their answers can be lost, and they can arrive late."""
PAUSE_SECONDS = 61.0
"""How long a slow request takes: longer than the deadline of `Policy`."""


class Faults(NamedTuple):
    """What may go wrong in one exploration: how often each kind of fault happens, at most.

    Attributes:
        crashes: processes that end before one of their effects.
        losses: requests that are done, and whose answers do not arrive.
        lates: requests that the process takes for lost, and that arrive at any later instant.
        pauses: requests whose answers take `PAUSE_SECONDS`, so that deadlines pass.
    """

    crashes: int = 0
    losses: int = 0
    lates: int = 0
    pauses: int = 0


ONE_CRASH = Faults(crashes=1)


class Move(NamedTuple):
    """One step of an exploration: what happened to the next effect of a process."""

    process: int
    what: str
    """`done`, the name of a fault in the singular, or `arrives` for a late request."""
    effect: Effect[object]

    def __str__(self) -> str:
        """Return the move as a line of a trace."""
        return f"{self.process} {self.what}: {_short(self.effect)}"


class Step(NamedTuple):
    """What a process got: an answer, or an error; `paused` if it took long."""

    answer: object
    error: Rejected | ResultUnknown | None = None
    paused: bool = False


_START = 0
"""The history of a process that got no answer yet."""
_CRASHED = -1
"""The history of a process that crashed."""


class _Late(NamedTuple):
    """A request that has not arrived: that of a process after a history."""

    process: int
    history: int
    effect: Request


class _State(NamedTuple):
    world: World
    histories: tuple[int, ...]
    """What each process got so far, by the number of that history."""
    left: Faults
    """What may still go wrong."""
    late: tuple[_Late, ...] = ()

    @property
    def key(self) -> object:
        """What tells this state from others."""
        return (
            self.world.state,
            self.histories,
            self.left,
            frozenset((each.process, each.history) for each in self.late),
        )


class Explored(NamedTuple):
    """What `explore` went through.

    Attributes:
        states_count: different states.
        ends_count: states after which nothing can happen.
        complete: whether these are all states.
    """

    states_count: int
    ends_count: int
    complete: bool = True


class InvariantError(AssertionError):
    """An invariant does not hold after some moves; its text lists them."""

    def __init__(self, path: tuple[Move, ...], error: AssertionError) -> None:
        """Take the path, and what the invariant said."""
        super().__init__("\n  ".join(["after these steps of processes:", *map(str, path), str(error)]))
        self.path = path


def explore(
    world: World,
    processes: Sequence[Process],
    invariant: Callable[[World], None],
    *,
    faults: Faults = ONE_CRASH,
    states_max: int = 1_000_000,
    partial: bool = False,
) -> Explored:
    """Explore every interleaving of processes, with every fault at every effect.

    Args:
        world: the tables at the start.
        processes: each makes a protocol; the protocol must behave the same for the same answers.
        invariant: called with each state's world; raises AssertionError where it does not hold.
        faults: what may go wrong, beside the order of steps.
        states_max: the most states that are looked at.
        partial: whether to return an incomplete result after so many states, instead of RuntimeError.

    Raises:
        InvariantError: the invariant does not hold.
        RuntimeError: there are more states: what was not explored is not known.
    """
    known = _Histories(processes)
    seen: set[object] = set()
    start = _State(world, (_START,) * len(processes), faults)
    stack: list[tuple[_State, _Path]] = [(start, None)]
    ends = 0
    while stack:
        state, path = stack.pop()
        if state.key in seen:
            continue
        if len(seen) == states_max:
            if partial:
                return Explored(len(seen), ends, complete=False)
            raise RuntimeError(f"more than {states_max} states")
        seen.add(state.key)
        try:
            invariant(state.world)
        except AssertionError as error:
            raise InvariantError(_moves(path), error) from error
        following = [(after, (move, path)) for move, after in _following(state, known)]
        stack += following
        ends += not following
    return Explored(len(seen), ends)


_Path: TypeAlias = "tuple[Move, _Path] | None"


def _moves(path: _Path) -> tuple[Move, ...]:
    found = []
    while path is not None:
        found.append(path[0])
        path = path[1]
    return tuple(reversed(found))


_DEFECTS = (AssertionError, AttributeError, LookupError, NameError, TypeError)
"""Errors of a program, which no protocol raises on purpose: they must not pass for the end of a process."""


def _following(state: _State, known: "_Histories") -> Iterator[tuple[Move, _State]]:
    """Yield the states after one step of a process, after each fault of it, and after the arrival of a late request."""
    left = state.left
    for number, history in enumerate(state.histories):
        if history == _CRASHED or (effect := known.next_effect(number, history)) is None:
            continue
        world, step = _performed(state.world, effect)
        one = _Following(state, known, number, history, effect)
        yield one.by("done", world, step)
        if left.crashes:
            yield one.by("crash", state.world, None, left._replace(crashes=left.crashes - 1))
        if left.pauses:
            paused = step._replace(paused=True)
            yield one.by("pause", world, paused, left._replace(pauses=left.pauses - 1))
        if not isinstance(effect, _WRITES):
            continue
        if left.losses and step.error is None:
            yield one.by("loss", world, _LOST, left._replace(losses=left.losses - 1))
        if left.lates:
            yield one.by("late", state.world, _LOST, left._replace(lates=left.lates - 1))
    for index, late in enumerate(state.late):
        world, _ = _performed(state.world, late.effect)
        others = (*state.late[:index], *state.late[index + 1 :])
        yield Move(late.process, "arrives", late.effect), state._replace(world=world, late=others)


_LOST = Step(None, ResultUnknown("the answer did not arrive"))


@dataclass(frozen=True)
class _Following:
    """Makes the states that follow one by the next effect of one process."""

    state: _State
    known: "_Histories"
    number: int
    history: int
    effect: Request

    def by(self, what: str, world: World, step: Step | None, left: Faults | None = None) -> tuple[Move, _State]:
        """Return a move and the state after it; the process crashed if it got no step."""
        own = _CRASHED if step is None else self.known.extended(self.number, self.history, step)
        histories = (*self.state.histories[: self.number], own, *self.state.histories[self.number + 1 :])
        late = self.state.late
        if what == "late":
            late = (*late, _Late(self.number, self.history, self.effect))
        return Move(self.number, what, self.effect), _State(world, histories, left or self.state.left, late)


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
        key = (number, history, step.paused, frozen(step.answer) if step.error is None else _error_key(step.error))
        if key not in self._numbers:
            self._numbers[key] = len(self._steps)
            self._steps.append((*self._steps[history], step))
        return self._numbers[key]


def _next_effect(process: Process, answers: tuple[Step, ...], number: int) -> Request | None:
    """Return the effect that a process asks for after these answers; None if it ended."""
    protocol = _flat(process())
    ambient = _Ambient(number)
    try:
        effect: Effect[object] = protocol.send(None)
        remaining = iter(answers)
        while True:
            if isinstance(effect, _REQUESTS):
                step = next(remaining, None)
                if step is None:
                    protocol.close()
                    return effect
                ambient.seconds += PAUSE_SECONDS * step.paused
                effect = protocol.send(step.answer) if step.error is None else protocol.throw(_raised(step.error))
            else:
                effect = protocol.send(ambient.answer(effect))
    except _DEFECTS:
        raise
    except Exception:  # noqa: BLE001 - the process ended by an error, such as a conflict.
        return None


def _flat(protocol: Protocol[object]) -> Protocol[object]:
    """Return a protocol that runs the protocols within it itself, one after the other.

    What is beside them is left out: it may never come to run.
    """
    answer: object = None
    error: Exception | None = None
    while True:
        try:
            effect = protocol.send(answer) if error is None else protocol.throw(error)
        except StopIteration as stop:
            return stop.value
        answer, error = None, None
        if isinstance(effect, WithTimeout):
            effect = effect.effect
        try:
            if isinstance(effect, WithHeartbeat):
                answer = yield from _flat(effect.protocol)
            elif isinstance(effect, Gather):
                answer = yield from _gather(effect)
            else:
                answer = yield effect
        except Exception as failed:  # noqa: BLE001 - the protocol sees every error of its effect.
            error = failed


def _gather(effect: Gather[object]) -> Protocol[list[object]]:
    answers: list[object] = []
    errors: list[Exception] = []
    for protocol in effect.protocols:
        try:
            answers.append((yield from _flat(protocol)))
        except Exception as error:  # noqa: BLE001 - raised when all ended, as by the drivers.
            errors.append(error)
    if errors:
        raise errors[0]
    return answers


class _Ambient:
    """Answers the effects of one process that are no requests."""

    def __init__(self, process: int) -> None:
        self.seconds = 0.0
        self._process = process
        self._ids = 0

    def answer(self, effect: Effect[object]) -> object:
        """Return the result of an effect.

        Raises:
            TypeError: a model cannot have the effect.
        """
        if isinstance(effect, Now):
            return self.seconds
        if isinstance(effect, Draw):
            return 0.0
        if isinstance(effect, UtcNow):
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)
        if isinstance(effect, NewId):
            self._ids += 1
            return f"f{self._process:07x}{self._ids:08x}"  # A simulation that made the start counts from 0.
        if isinstance(effect, Sleep):
            return None
        raise TypeError(f"{type(effect).__name__} cannot be explored")


def _performed(world: World, effect: Request) -> tuple[World, Step]:
    try:
        after, answer = world.perform(effect)
    except Rejected as error:
        return world, Step(None, error)
    return after, Step(answer)


def _raised(error: Rejected | ResultUnknown) -> Exception:
    """Return an error that no process raised before: a traceback must not grow over all histories."""
    if isinstance(error, Rejected):
        return Rejected(error.status, error.code, "", error.index)
    return ResultUnknown(str(error))


def _error_key(error: Rejected | ResultUnknown) -> object:
    return (error.status, error.code, error.index) if isinstance(error, Rejected) else "unknown"


def _short(effect: Effect[object]) -> str:
    operations = (effect.operation,) if isinstance(effect, Write) else getattr(effect, "operations", ())
    if not operations:
        return str(effect)[:160]
    lines = (
        f"{each.kind.value} {'/'.join(each.key)} {dict(each.properties)}{f' if {each.etag}' if each.etag else ''}"
        for each in operations
    )
    return f"{type(effect).__name__} {getattr(effect, 'table', '')} {'; '.join(lines)}"
