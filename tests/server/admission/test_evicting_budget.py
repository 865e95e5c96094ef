"""The oldest holder goes, whatever the order of growing and shrinking, and the total stays within its bound."""

from hypothesis import given
from hypothesis import strategies as st

from lazulite.server.admission.evicting_budget import HELD_BYTES_MIN, EvictingBudget


class Holder:
    def __init__(self, evicted: list["Holder"]) -> None:
        self._evicted = evicted

    def evict(self) -> None:
        self._evicted.append(self)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60))))
def test_the_oldest_are_evicted(changes: list[tuple[int, int]]) -> None:
    evicted: list[Holder] = []
    holders = [Holder(evicted) for _ in range(6)]
    budget = EvictingBudget(100 * HELD_BYTES_MIN)
    model: list[tuple[Holder, int]] = []
    for number, count in changes:
        holder = holders[number]
        places = [place for place, (held, _) in enumerate(model) if held is holder]
        if places and count:
            model[places[0]] = (holder, count)
        elif places:
            del model[places[0]]
        elif count:
            model.append((holder, count))
        expected = []
        while sum(held for _, held in model) > 100:
            expected.append(model.pop(0)[0])
        evicted.clear()
        budget.update(holder, count * HELD_BYTES_MIN)
        assert evicted == expected
        assert budget.held_bytes == sum(held for _, held in model) * HELD_BYTES_MIN


def test_one_large_connection_evicts_few() -> None:
    evicted: list[Holder] = []
    budget = EvictingBudget(100 * HELD_BYTES_MIN)
    for _ in range(100):
        budget.update(Holder(evicted), 1)
    budget.update(Holder(evicted), 10 * HELD_BYTES_MIN)
    assert len(evicted) == 10


def test_what_goes_while_others_are_evicted_is_looked_at_once() -> None:
    class Chain(Holder):
        def evict(self) -> None:
            super().evict()
            budget.update(self, 50 * HELD_BYTES_MIN)
            budget.update(self, 0)

    evicted: list[Holder] = []
    budget = EvictingBudget(100 * HELD_BYTES_MIN)
    for _ in range(5):
        budget.update(Chain(evicted), 40 * HELD_BYTES_MIN)
    assert len(evicted) == 3
    assert budget.held_bytes == 80 * HELD_BYTES_MIN
