"""RocksDB's failures as the engine contract's: the one place that reads the text of a RocksDB error.

The binding raises a bare `Exception` whose text begins with RocksDB's status ("Corruption: ...", "IO error: ..."), so
the type says nothing and the text must.
"""

from types import TracebackType

from rocksdict import DbClosedError

from lazulite.engine.contract import EngineError, EngineUnavailableError


class StalledError(EngineUnavailableError):
    """RocksDB stalls writes until its flushes or compactions catch up; nothing was written."""


class _StoreErrors:
    """`with STORE_ERRORS:` turns what RocksDB raises inside into an `EngineError`; everything else passes."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Exactly Exception is RocksDB's; subclasses (a programming error, a rejection) are not. A panic is the
        # binding's, when there is no memory for its result; its class cannot be imported.
        if error is not None and (kind in (Exception, DbClosedError) or type(error).__name__ == "PanicException"):
            raise engine_error(str(error)) from error


STORE_ERRORS = _StoreErrors()


def unavailable(error: EngineError) -> EngineUnavailableError:
    """Return an error for one of many waiters, caused by `error`: a traceback grows where one is raised twice."""
    one = EngineUnavailableError(str(error))
    one.__cause__ = error
    return one


def engine_error(text: str) -> EngineError:
    """Return the engine error that a RocksDB error text means."""
    reason = " ".join(text.split())
    if reason.startswith("Result incomplete"):
        return StalledError("the store is behind with its background work")
    if reason.startswith("Corruption"):
        return EngineError(f"the store is damaged: {reason}")
    return EngineUnavailableError(f"the store cannot serve: {reason}")
