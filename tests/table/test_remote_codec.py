"""A decoded decision decides as the original one, and rejects with the same words."""

import marshal
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.app.registry import CODEC
from lazulite.engine.compare_and_swap import CompareAndSwap, RowChangedError
from lazulite.engine.contract import CommitFunction
from lazulite.protocol.errors import ServiceError
from lazulite.table.operations.write_decisions import ApplyAll, ApplyOne, EntityWrite, WriteRejectedError
from tests.table.writes import NOW, STORED, writes


def crossed(decide: CommitFunction) -> CommitFunction:
    return CODEC.decode_commit(marshal.loads(marshal.dumps(CODEC.encode_commit(decide), 2)))


def outcome(decide: CommitFunction, current: Sequence[bytes | None]) -> Mapping[str, bytes | None] | tuple[object, ...]:
    try:
        return decide(current, NOW + 5)
    except ServiceError as error:
        return error.code, error.message, error.status
    except WriteRejectedError as rejection:
        return rejection.index, rejection.error.code, rejection.error.message, rejection.error.status
    except RowChangedError:
        return ()


def crossed_outcome(decide: CommitFunction, current: Sequence[bytes | None]) -> object:
    def retold(current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
        try:
            return crossed(decide)(current, timestamp)
        except (ServiceError, WriteRejectedError, RowChangedError) as rejection:
            raise CODEC.decode_rejection(marshal.loads(marshal.dumps(CODEC.encode_rejection(rejection), 2))) from None

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
    swap = CompareAndSwap(expected, {"r": b"y", "s": None})
    assert crossed_outcome(swap, [current]) == outcome(swap, [current])


def test_what_is_no_rejection_is_not_reported() -> None:
    with pytest.raises(ZeroDivisionError):
        CODEC.encode_rejection(ZeroDivisionError("a secret"))
