"""What the binding raises, as the contract's errors."""

import pytest

from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.engine.rocksdb.errors import STORE_ERRORS, StalledError


class PanicException(BaseException):
    """The binding's, which cannot be imported, has this name."""


@pytest.mark.parametrize(
    ("raised", "meant"),
    [
        (Exception("IO error: No space left on device"), EngineUnavailableError),
        (Exception("Result incomplete: Write stall"), StalledError),
        (Exception("Corruption: block checksum mismatch"), EngineError),
        (PanicException("Python API call failed"), EngineUnavailableError),
        (KeyError("ours"), KeyError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_errors_are_translated(raised: BaseException, meant: type[BaseException]) -> None:
    caught: BaseException | None = None
    try:
        with STORE_ERRORS:
            raise raised
    except BaseException as error:  # noqa: BLE001 - the type is the question
        caught = error
    assert type(caught) is meant
