"""RocksDB's failures as the engine contract's: the one place that reads the text of a RocksDB error.

The binding raises a bare `Exception` whose text begins with RocksDB's status ("Corruption: ...", "IO error: ..."), so
the type says nothing and the text must.
"""

from types import TracebackType

from rocksdict import DbClosedError

from lazulite.engine.contract import EngineError, EngineUnavailableError


class StalledError(EngineUnavailableError):
    """RocksDB would have had to wait for its flushes or compactions, and was told not to."""


class _StoreErrors:
    """`with STORE_ERRORS:` turns what RocksDB raises inside into an `EngineError`; everything else passes."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Exactly Exception is RocksDB's; subclasses (a programming error, a refusal) are somebody else's. A panic is
        # the binding's, when there is no memory for what it returns; its class cannot be imported.
        if error is not None and (kind in (Exception, DbClosedError) or type(error).__name__ == "PanicException"):
            raise engine_error(str(error)) from error


STORE_ERRORS = _StoreErrors()


def engine_error(text: str) -> EngineError:
    """Return the engine error that a RocksDB error text means."""
    reason = " ".join(text.split())
    if reason.startswith("Result incomplete"):
        return StalledError("the store is behind with its background work")
    if reason.startswith("Corruption"):
        return EngineError(f"the store is damaged: {reason}")
    return EngineUnavailableError(f"the store cannot serve: {reason}")
