"""A model checker: every interleaving of several protocols, with crashes, lost answers, late requests and deadlines.

Invariants: a protocol is deterministic in the answers that it gets, so a process is its list of answers. A state is the
world, these lists, the requests that have not arrived, and what may still go wrong. Worlds and lists are the same only
if they are equal, to the type and the age of each value.

A state is not explored if another one covers it, which has all that may come after it:

- A process that crashed takes no more steps. Each interleaving begins with one in which that process goes on later. So
  every crash is explored, at every step and of any number of processes, though none is a step of its own.
- A process that ended is like any other that ended, whatever it got.
- More faults may happen if more are left. A request that has not arrived may never arrive.
- A conditional request that has not arrived is forgotten when its row has another ETag: no ETag is used again.

An invariant sees a world, so it is called once for each world.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import ge
from typing import NamedTuple, TypeAlias

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
from lazulite_patterns.effects.runtime import Gather, NewId, Now, RandomNumber, ServiceNow, Sleep, UtcNow
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
    """What may go wrong in one exploration beside crashes: how often each kind of fault happens, at most.

    Attributes:
        losses: requests that are done, and whose answers do not arrive.
        lates: requests that the process takes for lost, and that arrive at any later instant.
        pauses: requests whose answers take `PAUSE_SECONDS`, so that deadlines pass.
    """

    losses: int = 0
    lates: int = 0
    pauses: int = 0


NO_FAULTS = Faults()


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
_OVER = -1
"""The history of a process that ended."""


class _State(NamedTuple):
    """Where an exploration is. Worlds, histories and requests are numbers of what `_StateCache` keeps."""

    world: int
    histories: tuple[int, ...]
    """What each process got so far."""
    left: Faults
    """What may still go wrong."""
    late: tuple[int, ...] = ()
    """The requests that have not arrived, in the order of their numbers."""

    def covers(self, other: "_State") -> bool:
        """Tell whether all that may come after another state with the same world and histories may come here, too."""
        enough = all(map(ge, self.left, other.left))
        return enough and (self.late == other.late or Counter(self.late) >= Counter(other.late))


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
    faults: Faults = NO_FAULTS,
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
    known = _StateCache(processes)
    explored: dict[tuple[int, tuple[int, ...]], list[_State]] = {}
    checked: set[int] = set()
    begin = tuple(known.canonical(number, _START) for number in range(len(processes)))
    stack: list[tuple[_State, _Path]] = [(_State(known.world(world), begin, faults), None)]
    count = ends = 0
    while stack:
        state, path = stack.pop()
        alike = explored.setdefault(state[:2], [])
        if any(each.covers(state) for each in alike):
            continue
        if count == states_max:
            if partial:
                return Explored(count, ends, complete=False)
            raise RuntimeError(f"more than {states_max} states")
        alike.append(state)
        count += 1
        if state.world not in checked:
            checked.add(state.world)
            try:
                invariant(known.worlds[state.world])
            except AssertionError as error:
                raise InvariantError(_moves(path), error) from error
        following = [(after, (move, path)) for move, after in _following(state, known)]
        stack += reversed(following)
        ends += not following
    return Explored(count, ends)


_Path: TypeAlias = "tuple[Move, _Path] | None"


def _moves(path: _Path) -> tuple[Move, ...]:
    found = []
    while path is not None:
        found.append(path[0])
        path = path[1]
    return tuple(reversed(found))


_DEFECTS = (AssertionError, AttributeError, LookupError, NameError, TypeError)
"""Errors of a program, which no protocol raises on purpose: they must not pass for the end of a process."""


def _following(state: _State, known: "_StateCache") -> Iterator[tuple[Move, _State]]:
    """Yield the states after one step of a process, after each fault of it, and after the arrival of a late request."""
    left = state.left
    for number, history in enumerate(state.histories):
        if history == _OVER:
            continue
        effect, world, step = known.performed(state.world, number, history)

        def by(
            what: str,
            world: int,
            step: Step,
            left: Faults,
            late: tuple[int, ...] = state.late,
            number: int = number,
            history: int = history,
            effect: Request = effect,
        ) -> tuple[Move, _State]:
            own = known.extended(number, history, step)
            histories = (*state.histories[:number], own, *state.histories[number + 1 :])
            return Move(number, what, effect), _State(world, histories, left, known.alive(world, late))

        yield by("done", world, step, left)
        if left.pauses:
            yield by("pause", world, step._replace(paused=True), left._replace(pauses=left.pauses - 1))
        if isinstance(effect, _WRITES):
            if left.losses and step.error is None:
                yield by("loss", world, _LOST, left._replace(losses=left.losses - 1))
            if left.lates:
                late = tuple(sorted((*state.late, known.request(number, effect))))
                yield by("late", state.world, _LOST, left._replace(lates=left.lates - 1), late)
    for index, request in enumerate(state.late):
        number, effect = known.requests[request]
        others = (*state.late[:index], *state.late[index + 1 :])
        world = known.arrived(state.world, request)
        yield Move(number, "arrives", effect), state._replace(world=world, late=known.alive(world, others))


_LOST = Step(None, ResultUnknown("the answer did not arrive"))


class _StateCache:
    """Numbers worlds, histories and late requests, and keeps what each step led to."""

    def __init__(self, processes: Sequence[Process]) -> None:
        self.worlds: list[World] = []
        self.requests: list[tuple[int, Request]] = []
        self._processes = processes
        self._numbers: dict[object, int] = {}
        self._steps: list[tuple[Step, ...]] = [()]
        self._effects: dict[tuple[int, int], Request | None] = {}
        self._running: dict[tuple[int, int], _Running] = {}
        self._performed: dict[tuple[int, int, int], tuple[Request, int, Step]] = {}
        self._arrived: dict[tuple[int, int], int] = {}

    def world(self, world: World) -> int:
        """Return the number of a world."""
        number = self._numbers.setdefault(("world", world.state), len(self.worlds))
        if number == len(self.worlds):
            self.worlds.append(world)
        return number

    def request(self, process: int, effect: Request) -> int:
        """Return the number of a request that has not arrived."""
        number = self._numbers.setdefault(("request", frozen(effect)), len(self.requests))
        if number == len(self.requests):
            self.requests.append((process, effect))
        return number

    def alive(self, world: int, late: tuple[int, ...]) -> tuple[int, ...]:
        """Return the requests that may still change something."""
        return tuple(each for each in late if not self.worlds[world].is_void(self.requests[each][1]))

    def arrived(self, world: int, request: int) -> int:
        """Return the world after the arrival of a late request."""
        if (world, request) not in self._arrived:
            self._arrived[world, request] = self.world(_performed(self.worlds[world], self.requests[request][1])[0])
        return self._arrived[world, request]

    def performed(self, world: int, number: int, history: int) -> tuple[Request, int, Step]:
        """Return what a process asks for, the world after it, and what the process gets."""
        key = (world, number, history)
        if key not in self._performed:
            effect = self._next(number, history)
            assert effect is not None
            after, step = _performed(self.worlds[world], effect)
            self._performed[key] = effect, self.world(after), step
        return self._performed[key]

    def canonical(self, number: int, history: int) -> int:
        """Return the number of a history; one number for all histories of processes that ended."""
        return _OVER if self._next(number, history) is None else history

    def extended(self, number: int, history: int, step: Step) -> int:
        """Return the number of a history with one more answer."""
        answer = frozen(step.answer) if step.error is None else _error_key(step.error)
        key = ("history", number, history, step.paused, answer)
        if key not in self._numbers:
            self._numbers[key] = following = len(self._steps)
            self._steps.append((*self._steps[history], step))
            if (running := self._running.pop((number, history), None)) is not None:
                self._keep(number, following, running, (step,))
        return self.canonical(number, self._numbers[key])

    def _next(self, number: int, history: int) -> Request | None:
        """Return what a process asks for after a history; None if it ended."""
        if (number, history) not in self._effects:
            self._keep(number, history, _Running(self._processes[number], number), self._steps[history])
        return self._effects[number, history]

    def _keep(self, number: int, history: int, running: "_Running", steps: Sequence[Step]) -> None:
        for step in steps:
            running.resume(step)
        self._effects[number, history] = running.effect
        if running.effect is not None:
            self._running[number, history] = running


class _Running:
    """A process that got some answers. Another one after the same answers begins at the start."""

    def __init__(self, process: Process, number: int) -> None:
        self.effect: Request | None = None
        self._runtime = _Runtime(number)
        self._protocol = _flat(process())
        self._until_request(lambda: self._protocol.send(None))

    def resume(self, step: Step) -> None:
        """Give the process the answer to its request."""
        self._runtime.seconds += PAUSE_SECONDS * step.paused
        error = step.error
        if error is None:
            self._until_request(lambda: self._protocol.send(step.answer))
        else:
            self._until_request(lambda: self._protocol.throw(_raised(error)))

    def _until_request(self, resume: Callable[[], Effect[object]]) -> None:
        self.effect = None
        try:
            effect = resume()
            while not isinstance(effect, _REQUESTS):
                effect = self._protocol.send(self._runtime.answer(effect))
            self.effect = effect
        except _DEFECTS:
            raise
        except Exception:  # noqa: BLE001 - the process ended, or an error such as a conflict ended it.
            return


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


class _Runtime:
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
        if isinstance(effect, RandomNumber):
            return 0.0
        if isinstance(effect, UtcNow | ServiceNow):
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
