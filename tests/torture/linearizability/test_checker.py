"""The checker against examples whose answer is known, and against trying every order."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .checker import Operation, State, check
from .model import ANY, EMPTY, ROWS, Change, Get, Partition, Query, Rejection, Verb, Write

OPERATIONS_MAX = 5


def by_every_order(states: Iterable[State], operations: Sequence[Operation[State]]) -> set[State]:
    """Return every state in which an order that respects time ends: the definition, with nothing clever about it."""
    ends = {
        end
        for chosen in _choices(operations)
        for order in permutations(chosen)
        if not any(_precedes(later, earlier) for earlier, later in combinations(order, 2))
        for state in states
        if (end := _run(state, order)) is not None
    }
    return {end for end in ends if end is not None}


def _choices(operations: Sequence[Operation[State]]) -> Iterator[list[Operation[State]]]:
    """Yield the operations that happened: all that were answered, and any of the others."""
    answered = [each for each in operations if each.returned is not None]
    others = [each for each in operations if each.returned is None]
    for count in range(len(others) + 1):
        for some in combinations(others, count):
            yield answered + list(some)


def _precedes(one: Operation[State], other: Operation[State]) -> bool:
    return one.returned is not None and one.returned < other.invoked


def _run(state: State, order: Iterable[Operation[State]]) -> State | None:
    for operation in order:
        after = operation.apply(state)
        if after is None:
            return None
        state = after
    return state


# --- known examples


class Enqueue(NamedTuple):
    invoked: int
    returned: int | None
    item: str

    @property
    def changes_nothing(self) -> bool:
        return False

    def apply(self, queue: str) -> str | None:
        return queue + self.item


class Dequeue(NamedTuple):
    invoked: int
    returned: int | None
    item: str

    @property
    def changes_nothing(self) -> bool:
        return False

    def apply(self, queue: str) -> str | None:
        return queue[1:] if queue[:1] == self.item else None


class Put(NamedTuple):
    invoked: int
    returned: int | None
    value: int

    @property
    def changes_nothing(self) -> bool:
        return False

    def apply(self, _: int) -> int | None:
        return self.value


class Read(NamedTuple):
    invoked: int
    returned: int | None
    value: int

    @property
    def changes_nothing(self) -> bool:
        return True

    def apply(self, state: int) -> int | None:
        return state if state == self.value else None


@pytest.mark.parametrize(
    ("operations", "states"),
    [
        # M. Herlihy, J. Wing, "Linearizability", 1990, figure 1: queues that overlap, and do not.
        ([Enqueue(1, 3, "x"), Enqueue(2, 4, "y"), Dequeue(5, 6, "x"), Dequeue(7, 8, "y"), Enqueue(9, 10, "z")], {"z"}),
        ([Enqueue(1, 2, "x"), Enqueue(3, 4, "y"), Dequeue(5, 6, "y")], set()),
        ([Enqueue(1, 4, "x"), Dequeue(2, 3, "x")], {""}),
        ([Enqueue(1, 3, "x"), Enqueue(2, 4, "y"), Dequeue(5, 7, "y"), Dequeue(6, 8, "y")], set()),
    ],
)
def test_queues(operations: Sequence[Operation[str]], states: set[str]) -> None:
    assert check([""], operations).states == states


@pytest.mark.parametrize(
    ("operations", "states"),
    [
        pytest.param([Put(1, 6, 1), Read(2, 3, 0), Read(4, 5, 1)], {1}, id="a write is seen from some moment on"),
        pytest.param([Put(1, 6, 1), Read(2, 3, 1), Read(4, 5, 0)], set(), id="but not taken back"),
        pytest.param([Put(1, 2, 1), Read(3, 4, 0)], set(), id="nor missed once answered"),
        pytest.param([Put(1, 5, 1), Read(2, 4, 1), Read(3, 6, 0)], {1}, id="two reads at once are in either order"),
        pytest.param([Put(1, 3, 1), Put(2, 4, 2)], {1, 2}, id="and so are two writes"),
        pytest.param([Put(1, 3, 1), Put(2, 4, 2), Read(5, 6, 1), Read(7, 8, 2)], set(), id="until they are seen"),
        pytest.param([Put(1, None, 1)], {0, 1}, id="without an answer it may have happened"),
        pytest.param([Put(1, None, 1), Read(2, 3, 0), Read(4, 5, 1)], {1}, id="long after"),
        pytest.param([Put(1, None, 1), Read(2, 3, 1), Read(4, 5, 0)], set(), id="but once"),
    ],
)
def test_registers(operations: Sequence[Operation[int]], states: set[int]) -> None:
    assert check([0], operations).states == states


def test_report_names_the_contradicting_operation_and_states() -> None:
    verdict = check([0], [Put(1, 2, 1), Put(3, 5, 2), Read(4, 6, 2), Read(7, 8, 1)])
    assert verdict.culprit == 3
    assert verdict.before == {2}


def test_equivalent_concurrent_writes_share_configurations() -> None:
    writes = [Put(number, 100 + number, number) for number in range(1, 13)]
    verdict = check([0], [*writes, Read(200, 201, 7)])
    assert verdict.states == {7}
    assert verdict.running_max == 12
    assert verdict.configurations_max <= 13 * 2**12


# --- every order


@st.composite
def changes(draw: st.DrawFn, writers: Sequence[int]) -> tuple[Change, ...]:
    rows = draw(st.lists(st.integers(0, ROWS - 2), min_size=1, max_size=2, unique=True))  # Few, so that they meet.
    conditions = st.sampled_from([None, ANY, *writers])
    return tuple(Change(draw(st.sampled_from(Verb)), row, draw(conditions), draw(st.booleans())) for row in rows)


@st.composite
def histories(draw: st.DrawFn) -> list[Get | Query | Write]:
    """Histories that are linearizable: each operation has its moment, and the answers are those of that order."""
    count = draw(st.integers(1, OPERATIONS_MAX))
    ends = iter(draw(st.permutations(range(3 * count))))
    spans = [sorted((next(ends), next(ends), next(ends))) for _ in range(count)]
    writers = [invoked for invoked, *_ in spans]
    state = EMPTY
    history: list[Get | Query | Write] = []
    for invoked, _, end in sorted(spans, key=lambda span: span[1]):
        operation: Get | Query | Write
        match draw(st.sampled_from(["get", "query", "write", "write", "unanswered"])):
            case "get":
                row = draw(st.integers(0, ROWS - 2))
                operation = Get(invoked, end, row, state[row])
            case "query":
                operation = Query(invoked, end, state)
            case "write":
                operation = _answered(Write(invoked, end, draw(changes(writers))), state)
            case _:
                operation = Write(invoked, None, draw(changes(writers)))
                if draw(st.booleans()):
                    history.append(operation)
                    continue
        state = operation.apply(state) or state
        history.append(operation)
    return history


def _answered(write: Write, state: Partition) -> Write:
    """Return a write with the answer that it gets in a state."""
    answers = [None, *(Rejection(at, status) for at in range(len(write.changes)) for status in (404, 409, 412))]
    (fitting,) = [each for each in (write._replace(rejected=answer) for answer in answers) if each.apply(state)]
    return fitting


@st.composite
def answers_of_others(draw: st.DrawFn) -> list[Get | Query | Write]:
    """Histories in which some responses are altered."""
    history = draw(histories())
    states = [EMPTY, *_states(history)]
    for index in draw(st.lists(st.integers(0, len(history) - 1), min_size=1, max_size=2)):
        operation = history[index]
        state = draw(st.sampled_from(states))
        match operation:
            case Get():
                history[index] = operation._replace(found=state[operation.row])
            case Query():
                history[index] = operation._replace(found=state)
            case Write(returned=int()):
                history[index] = _answered(operation, state)
    return history


def _states(history: Sequence[Get | Query | Write]) -> Iterator[Partition]:
    """Yield the states that the history passes through in the order in which it is listed."""
    state = EMPTY
    for operation in history:
        state = operation.apply(state) or state
        yield state


@settings(max_examples=150, deadline=None)
@given(histories())
def test_linearizable_history_is_accepted(history: list[Get | Query | Write]) -> None:
    verdict = check([EMPTY], history)
    assert verdict.states
    assert verdict.states == by_every_order([EMPTY], history)


@settings(max_examples=150, deadline=None)
@given(answers_of_others())
def test_the_verdict_is_that_of_every_order(history: list[Get | Query | Write]) -> None:
    assert check([EMPTY], history).states == by_every_order([EMPTY], history)


@settings(max_examples=100, deadline=None)
@given(answers_of_others(), st.integers(0, 3 * OPERATIONS_MAX))
def test_a_history_may_be_cut_where_nothing_runs(history: list[Get | Query | Write], cut: int) -> None:
    """Carrying the states over is as good as checking all at once."""
    first = [each for each in history if each.invoked < cut]
    rest = [each for each in history if each.invoked >= cut]
    if any(each.returned is None or each.returned >= cut for each in first):
        return
    assert check(check([EMPTY], first).states, rest).states == check([EMPTY], history).states
