"""Values cross by their types; a type that is not in the table is a defect."""

import pytest

from lazulite.engine.compare_and_swap import CompareAndSwap, RowChangedError
from lazulite.engine.remote.codec import ENGINE_COMMITS, ENGINE_REJECTIONS, Encoding, EncodingTable


class OddError(ValueError):
    """A rejection."""


TABLE = EncodingTable(
    ENGINE_COMMITS, [*ENGINE_REJECTIONS, Encoding(ValueError, str, ValueError), Encoding(OddError, str, OddError)]
)


def test_a_commit_function_is_decoded_as_it_was() -> None:
    swap = CompareAndSwap(b"x", {"r": None})
    assert TABLE.decode_commit(TABLE.encode_commit(swap)) == swap
    with pytest.raises(KeyError):
        TABLE.encode_commit(lambda _, __: {})


def test_a_rejection_is_that_of_the_first_type_that_fits() -> None:
    assert isinstance(TABLE.decode_rejection(TABLE.encode_rejection(RowChangedError())), RowChangedError)
    crossed = TABLE.decode_rejection(TABLE.encode_rejection(OddError("x")))
    assert (type(crossed), str(crossed)) == (ValueError, "x")


def test_any_other_exception_is_raised_again() -> None:
    with pytest.raises(ZeroDivisionError):
        TABLE.encode_rejection(ZeroDivisionError("a secret"))
