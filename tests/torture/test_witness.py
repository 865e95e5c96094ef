"""What a reader was shown and nobody can account for."""

from collections import Counter

from tests.sdk.ledger import Journal, Key, Stored

from .witness import NOTHING, Chronicle, lost

KEY: Key = ("t", "p", "r")
OLD, NEW, NEWER = (f"W/\"datetime'2026-11-21T10%3A00%3A0{second}Z'\"" for second in (1, 2, 3))


def chronicle(*, in_flight: bool = False) -> Chronicle:
    """A key was OLD at first, and became NEW; if something is in flight, nobody knows."""
    made = Chronicle(Journal(lambda _: True), Counter())
    made.settle({KEY: Stored(OLD, {})})
    made.intend({KEY: {}})
    if not in_flight:
        made.acknowledge({KEY: NEW})
    return made


def test_what_was_acknowledged_may_be_shown_before_and_after() -> None:
    store = {KEY: Stored(NEW, {})}
    assert lost({(KEY, OLD), (KEY, NEW)}, [chronicle()], store) == []


def test_what_was_in_flight_may_be_shown_if_it_is_there() -> None:
    assert lost({(KEY, NEW)}, [chronicle(in_flight=True)], {KEY: Stored(NEW, {})}) == []
    [problem] = lost({(KEY, OLD), (KEY, NEW)}, [chronicle(in_flight=True)], {KEY: Stored(OLD, {})})
    assert NEW in problem


def test_an_absence_is_a_state_too() -> None:
    made = chronicle()
    made.intend({KEY: None})
    assert lost({(KEY, NOTHING)}, [made], {}) == []
    assert len(lost({(KEY, NOTHING)}, [made], {KEY: Stored(NEW, {})})) == 1
    made.acknowledge()
    assert lost({(KEY, NOTHING), (KEY, NEW)}, [made], {}) == []


def test_a_state_that_nobody_wrote_is_lost() -> None:
    assert len(lost({(KEY, NEWER)}, [chronicle()], {KEY: Stored(NEW, {})})) == 1


def test_a_settled_chronicle_knows_the_present_only() -> None:
    made = chronicle()
    made.settle({KEY: Stored(NEW, {})})
    assert made.knows(KEY, NEW)
    assert not made.knows(KEY, OLD)
