"""States that were shown to a reader and that no write explains."""

from collections import Counter
from collections.abc import Callable
from itertools import count

from tests.sdk.ledger import Key, Stored

from .witness import NOTHING, Chronicle, lost

KEY: Key = ("t", "p", "r")
OLD, NEW, NEWER = (f"W/\"datetime'2026-11-21T10%3A00%3A0{second}Z'\"" for second in (1, 2, 3))


def chronicle(*, in_flight: bool = False, now: Callable[[], int] = lambda: 0) -> Chronicle:
    """A key was OLD at first, and became NEW; if a write is in flight, both are possible."""
    made = Chronicle(lambda _: True, Counter(), now, {})
    made.settle({KEY: Stored(OLD, {})})
    made.intend({KEY: {}})
    if not in_flight:
        made.acknowledge({KEY: NEW})
    return made


def test_acknowledged_write_explains_old_and_new_states() -> None:
    store = {KEY: Stored(NEW, {})}
    assert lost({(KEY, OLD), (KEY, NEW)}, [chronicle()], store) == []


def test_write_in_flight_explains_its_state_if_stored() -> None:
    assert lost({(KEY, NEW)}, [chronicle(in_flight=True)], {KEY: Stored(NEW, {})}) == []
    [problem] = lost({(KEY, OLD), (KEY, NEW)}, [chronicle(in_flight=True)], {KEY: Stored(OLD, {})})
    assert NEW in problem


def test_shown_absence_needs_a_deletion() -> None:
    made = chronicle()
    made.intend({KEY: None})
    assert lost({(KEY, NOTHING)}, [made], {}) == []
    assert len(lost({(KEY, NOTHING)}, [made], {KEY: Stored(NEW, {})})) == 1
    made.acknowledge()
    assert lost({(KEY, NOTHING), (KEY, NEW)}, [made], {}) == []


def test_state_without_a_write_is_lost() -> None:
    assert len(lost({(KEY, NEWER)}, [chronicle()], {KEY: Stored(NEW, {})})) == 1


def test_settled_chronicle_explains_the_present_only() -> None:
    made = chronicle()
    made.settle({KEY: Stored(NEW, {})})
    assert made.knows(KEY, NEW)
    assert not made.knows(KEY, OLD)


def test_chronicle_as_of_an_earlier_moment() -> None:
    calls = count(1)
    made = chronicle(now=lambda: next(calls))  # It becomes NEW between the calls 1 and 2.
    made.intend({KEY: None})
    made.acknowledge()
    assert made.answered == [(1, 2), (3, 4)]
    old, new = {KEY: Stored(OLD, {})}, {KEY: Stored(NEW, {})}
    fits = {moment: [not made.as_of(moment).problems(store) for store in (old, new, {})] for moment in range(5)}
    assert fits == {
        0: [True, False, False],
        1: [True, True, False],
        2: [False, True, False],
        3: [False, True, True],
        4: [False, False, True],
    }
    assert made.as_of(2).as_of(1).problems(new) == []
    assert made.as_of(2).as_of(4).problems({}) != []
    assert not made.as_of(1).knows(KEY, NEW)
    assert made.as_of(2).knows(KEY, OLD)


def test_writes_of_an_earlier_count_precede_the_next() -> None:
    made = chronicle(now=lambda: 7)
    made.count_anew()
    assert made.answered == []
    assert made.as_of(1).problems({KEY: Stored(NEW, {})}) == []
