"""The oldest holder goes, whatever the order of growing and shrinking, and the total stays within its bound."""

from hypothesis import given
from hypothesis import strategies as st

from lazulite.server.admission.evicting_budget import EvictingBudget


class Holder:
    def __init__(self, evicted: list["Holder"]) -> None:
        self._evicted = evicted

    def evict(self) -> None:
        self._evicted.append(self)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60))))
def test_the_oldest_are_evicted(changes: list[tuple[int, int]]) -> None:
    evicted: list[Holder] = []
    holders = [Holder(evicted) for _ in range(6)]
    budget = EvictingBudget(100)
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
        budget.update(holder, count)
        assert evicted == expected
        assert budget.held_bytes == sum(held for _, held in model) <= 100
