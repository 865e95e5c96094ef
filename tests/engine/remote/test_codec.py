"""Rejections cross by their types; a type that is not in the table is a defect."""

import pytest

from lazulite.engine.remote.codec import Codec, Encoding


class OddError(ValueError):
    """A rejection."""


CODEC = Codec(rejections=[Encoding(ValueError, str, ValueError), Encoding(OddError, str, OddError)])


def test_a_rejection_is_that_of_the_first_type_that_fits() -> None:
    crossed = CODEC.decode_rejection(CODEC.encode_rejection(OddError("x")))
    assert (type(crossed), str(crossed)) == (ValueError, "x")


def test_any_other_exception_is_raised_again() -> None:
    with pytest.raises(ZeroDivisionError):
        CODEC.encode_rejection(ZeroDivisionError("a secret"))
