"""A decision that was told decides as the one that was meant, and refuses with the same words."""

import marshal
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.compare_and_swap import RowChangedError, Swap
from lazulite.engine.contract import Decide
from lazulite.protocol.errors import ServiceError
from lazulite.table.operations.write_decisions import ApplyAll, ApplyOne, EntityWrite, WriteRefusedError
from lazulite.table.remote_codec import TableWording
from tests.table.writes import NOW, STORED, writes

WORDING = TableWording()


def crossed(decide: Decide) -> Decide:
    return WORDING.decision(marshal.loads(marshal.dumps(WORDING.tell_decision(decide), 2)))


def outcome(decide: Decide, current: Sequence[bytes | None]) -> Mapping[str, bytes | None] | tuple[object, ...]:
    try:
        return decide(current, NOW + 5)
    except ServiceError as error:
        return error.code, error.message, error.status
    except WriteRefusedError as refusal:
        return refusal.index, refusal.error.code, refusal.error.message, refusal.error.status
    except RowChangedError:
        return ()


def crossed_outcome(decide: Decide, current: Sequence[bytes | None]) -> object:
    def retold(current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        try:
            return crossed(decide)(current, stamp)
        except (ServiceError, WriteRefusedError, RowChangedError) as refusal:
            raise WORDING.refusal(marshal.loads(marshal.dumps(WORDING.tell_refusal(refusal), 2))) from None

    return outcome(retold, current)


@given(write=writes("r"), current=st.sampled_from([None, STORED]))
def test_one_write(write: EntityWrite, current: bytes | None) -> None:
    assert crossed_outcome(ApplyOne(write), [current]) == outcome(ApplyOne(write), [current])


@given(several=st.tuples(writes("a"), writes("b")), current=st.tuples(*[st.sampled_from([None, STORED])] * 2))
def test_several_writes(several: tuple[EntityWrite, ...], current: tuple[bytes | None, ...]) -> None:
    assert crossed_outcome(ApplyAll(several), current) == outcome(ApplyAll(several), current)


@pytest.mark.parametrize("expected", [None, b"x"])
@pytest.mark.parametrize("current", [None, b"x"])
def test_a_swap(expected: bytes | None, current: bytes | None) -> None:
    swap = Swap(expected, {"r": b"y", "s": None})
    assert crossed_outcome(swap, [current]) == outcome(swap, [current])


def test_what_is_no_refusal_is_not_told() -> None:
    with pytest.raises(ZeroDivisionError):
        WORDING.tell_refusal(ZeroDivisionError("a secret"))
