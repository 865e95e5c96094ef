"""A decoded decision decides as the original one, and rejects with the same words."""

import marshal
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.app.registry import CODEC
from lazulite.engine.commit import Commit, Decide, Decision, Needs, Values, compare_and_swap
from lazulite.protocol.errors import ServiceError
from lazulite.table.operations.write_decisions import EntityWrite, WriteRejectedError, apply_all, apply_one
from tests.table.writes import NOW, STORED, writes

T = TypeVar("T")


def crossed(commit: Commit[T]) -> Commit[T]:
    procedure = commit.procedure
    assert procedure is not None
    payload = marshal.loads(marshal.dumps(procedure.encode(commit.argument), 2))
    return CODEC.commits[procedure.name].make(payload)


def outcome(decide: Decide[T], current: Values) -> object:
    try:
        return decide(current, NOW + 5)
    except ServiceError as error:
        return error.code, error.message, error.status
    except WriteRejectedError as rejection:
        return rejection.index, rejection.error.code, rejection.error.message, rejection.error.status


def crossed_outcome(commit: Commit[T], current: Values) -> object:
    def retold(current: Values, timestamp: int) -> Decision[T] | Needs[T]:
        try:
            return crossed(commit).decide(current, timestamp)
        except (ServiceError, WriteRejectedError) as rejection:
            raise CODEC.decode_rejection(marshal.loads(marshal.dumps(CODEC.encode_rejection(rejection), 2))) from None

    return outcome(retold, current)


@given(write=writes("r"), current=st.sampled_from([None, STORED]))
def test_one_write(write: EntityWrite, current: bytes | None) -> None:
    assert crossed_outcome(apply_one(write), [current]) == outcome(apply_one(write).decide, [current])


@given(several=st.tuples(writes("a"), writes("b")), current=st.tuples(*[st.sampled_from([None, STORED])] * 2))
def test_several_writes(several: tuple[EntityWrite, ...], current: tuple[bytes | None, ...]) -> None:
    assert crossed_outcome(apply_all(several), current) == outcome(apply_all(several).decide, current)


@pytest.mark.parametrize("expected", [None, b"x"])
@pytest.mark.parametrize("current", [None, b"x"])
def test_a_swap(expected: bytes | None, current: bytes | None) -> None:
    swap = compare_and_swap({"r": expected}, {"r": b"y", "s": None})
    assert crossed_outcome(swap, [current, b""]) == outcome(swap.decide, [current, b""])


def test_what_is_no_rejection_is_not_reported() -> None:
    with pytest.raises(ZeroDivisionError):
        CODEC.encode_rejection(ZeroDivisionError("a secret"))
