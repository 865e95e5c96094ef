"""What a write tells in advance of what it will do."""

from hypothesis import assume, given
from hypothesis import strategies as st

from lazulite.engine.precondition import Expect, Foreseen
from lazulite.protocol.errors import ServiceError
from lazulite.table.operations.write_decisions import ApplyOne, EntityWrite
from tests.table.writes import NOW, STORED, writes


def _fits(foreseen: Foreseen, current: bytes | None) -> bool:
    if foreseen.expects is (Expect.PRESENT if current is None else Expect.ABSENT):
        return False
    return current is None or foreseen.stamp in (None, NOW)


@given(writes("r"), st.sampled_from([None, STORED]))
def test_what_is_told_of_a_write_in_advance_is_what_it_does(write: EntityWrite, current: bytes | None) -> None:
    assume(write.condition is None or write.kind.must_exist)  # An If-Match says what kind of write it is.
    decision = ApplyOne(write)
    try:
        done = decision([current], NOW + 1)
    except ServiceError:
        done = None
    told = decision.seen(current) if decision.foresee() is None else decision
    foreseen = None if told is None else told.foresee()
    if told is not None and foreseen is not None and _fits(foreseen, current):
        assert done == {"r": told.value(NOW + 1)}
    else:
        assert done is None


@given(writes("r"), st.sampled_from([None, STORED]))
def test_what_was_seen_holds_for_that_row_only(write: EntityWrite, current: bytes | None) -> None:
    seen = ApplyOne(write).seen(current)
    assert seen is None or seen.foresee() == (
        Foreseen(Expect.ABSENT) if current is None else Foreseen(Expect.PRESENT, stamp=NOW)
    )
