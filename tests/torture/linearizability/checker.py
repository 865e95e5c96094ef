"""Is a concurrent history linearizable? Wing and Gong's search as Lowe's just-in-time linearization, over a graph.

A history is linearizable if each operation can be given one moment between its invocation and its return so that the
answers are those of a sequential object. The search walks through the invocations and returns in the order of time and
keeps every *configuration*: a state that the object may be in, and which of the running operations have had their
moment. Only when an operation returns must it have had one, so only then are moments given out, in every order that
ends with that operation. Equal configurations are one (Lowe's memoisation), so an order never costs more than what
can be distinguished.

Source: J. Wing, C. Gong, "Testing and verifying concurrent objects", 1993; G. Lowe, "Testing for linearizability",
2017, sections 4 and 5. Partitions are objects of their own, thus each is checked by itself (A. Horn, D. Kroening,
"Faster linearizability checking via P-compositionality", 2015).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

State = TypeVar("State", bound=Hashable)


class Operation(Protocol[State]):
    """One operation and its response. One operation precedes another if it returned before the other was invoked."""

    @property
    def invoked(self) -> int:
        """When it was begun."""
        ...

    @property
    def returned(self) -> int | None:
        """When its answer came. None: there was none, and it has its moment before the end of the history, or never."""
        ...

    @property
    def changes_nothing(self) -> bool:
        """Whether `apply` returns every state that it does not reject."""
        ...

    def apply(self, state: State) -> State | None:
        """Return the state that it leaves; None if it cannot have had its answer, or, without one, no effect."""
        ...


class Verdict(NamedTuple, Generic[State]):
    """What a check found."""

    states: frozenset[State]
    """Those that the object may be in at the end; none: the history is not linearizable."""
    culprit: int | None = None
    """The operation whose answer nothing explains, as an index."""
    before: frozenset[State] = frozenset()
    """The states that the object may have been in, and the culprit does not fit."""
    configurations_max: int = 0
    """The most configurations that were held at once."""
    running_max: int = 0
    """The most operations that ran at once."""


Configuration = tuple[State, int]
"""A state, and a bit for each of the running operations that have had their moment."""


def check(states: Iterable[State], operations: Sequence[Operation[State]]) -> Verdict[State]:
    """Judge a history of an object that was in one of `states` before it."""
    configurations = {(state, 0) for state in states}
    running: dict[int, Operation[State]] = {}
    bits: dict[int, int] = {}
    running_max, configurations_max = 0, len(configurations)
    for index, returns in _events(operations):
        if not returns:
            bit = bits[index] = _free(sum(running))
            running[bit] = operations[index]
            running_max = max(running_max, len(running))
            continue
        bit = bits.pop(index)
        reached = _reach(configurations, running, bit)
        configurations_max = max(configurations_max, len(reached))
        left = {(state, done ^ bit) for state, done in reached if done & bit}
        if not left:
            before = frozenset(state for state, _ in configurations)
            return Verdict(frozenset(), index, before, configurations_max, running_max)
        configurations = left
        del running[bit]
    reached = _reach(configurations, running, 0)
    configurations_max = max(configurations_max, len(reached))
    return Verdict(frozenset(state for state, _ in reached), None, frozenset(), configurations_max, running_max)


def _events(operations: Sequence[Operation[State]]) -> list[tuple[int, bool]]:
    """Return (index, is it a return) in the order of time; what happens at one time overlaps."""
    events = [(operation.invoked, False, index) for index, operation in enumerate(operations)]
    events += [(each.returned, True, index) for index, each in enumerate(operations) if each.returned is not None]
    return [(index, returns) for _, returns, index in sorted(events)]


def _free(taken: int) -> int:
    """Return the lowest bit that is not taken."""
    return ~taken & (taken + 1)


def _reach(
    configurations: Iterable[Configuration[State]], running: Mapping[int, Operation[State]], until: int
) -> set[Configuration[State]]:
    """Return every configuration that giving out moments leads to; none more where `until` has had its own.

    An operation that changes nothing, whatever the state, has its moment as soon as its answer fits: what was possible
    before is possible after it.
    """
    seen = set(configurations)
    waiting = [each for each in seen if not each[1] & until]
    while waiting:
        state, done = waiting.pop()
        following: list[Configuration[State]] = []
        for bit, operation in running.items():
            if done & bit:
                continue
            after = operation.apply(state)
            if after is None:
                continue
            if operation.changes_nothing:
                following = [(after, done | bit)]
                break
            following.append((after, done | bit))
        for each in following:
            if each not in seen:
                seen.add(each)
                if not each[1] & until:
                    waiting.append(each)
    return seen
