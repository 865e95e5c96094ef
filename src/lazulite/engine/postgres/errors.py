"""What the database and the way to it raise, and what that means to a caller."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from lazulite.engine.contract import EngineError, EngineUnavailableError

AGAIN = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
"""The database undid the statement for the sake of another one: it may be sent again."""

CHECK_FAILED = (asyncpg.DivisionByZeroError, asyncpg.UniqueViolationError)
"""A check of a script failed (see `sql_scripts`): nothing of it was done."""

LOST = (
    OSError,  # Also TimeoutError.
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.ReadOnlySQLTransactionError,
)
"""The connection is of no use any more, and others of that age may be of none either."""

_AWAY = (
    *LOST,
    *AGAIN,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.LockNotAvailableError,
)
"""The database cannot be reached, is stopping, starting, full, a standby, or out of something."""

_OF_A_WORKER = "while executing command on "
"""What Citus' context says of an error that came to it by its connection to a worker."""
_LOST_BY_LIBPQ = re.compile(
    r"server closed the connection unexpectedly|could not (send data to|receive data from) server"
    r"|no connection to the server|connection not open|SSL (SYSCALL error|connection has been closed)|$"
)
"""How the message begins where libpq lost that connection, and so has no SQLSTATE; it may have no message either."""
_LOST_BY_CITUS = ("failure on connection marked as essential: ", "could not commit transaction for shard ")
"""How the message begins where a statement or a commit failed on a worker, and whether it was done is unknown."""


@contextmanager
def worker_errors() -> Iterator[None]:
    """Raise the loss of a connection to a worker as that: Citus calls it an internal error (XX000).

    The texts are those of Citus 13, in `remote_commands.c`, `remote_transaction.c` and `placement_connection.c`. Any
    other internal error stays one.

    Raises:
        asyncpg.ConnectionFailureError: the coordinator lost a worker.
    """
    try:
        yield
    except asyncpg.InternalServerError as error:
        if not _lost_worker(error):
            raise
        raise asyncpg.ConnectionFailureError(f"a worker of the database was lost: {line(error)}") from error


def _lost_worker(error: asyncpg.InternalServerError) -> bool:
    text = str(error).strip()
    if text.startswith(_LOST_BY_CITUS):
        return True
    of_a_worker = _OF_A_WORKER in str(getattr(error, "context", None) or "")
    return of_a_worker and _LOST_BY_LIBPQ.match(text) is not None


@contextmanager
def database_errors(but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Raise what the database raises as errors of engines, `but` these as they are.

    Their texts are the first line of what it says, which names no password, and no row.
    """
    try:
        yield
    except but:
        raise
    except _AWAY as error:
        raise EngineUnavailableError(f"the database cannot serve now: {line(error)}") from error
    except asyncpg.PostgresError as error:
        raise EngineError(f"the database refused: {line(error)}") from error


def line(error: BaseException) -> str:
    """Return what an error says, in one line, which is never empty."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


def again(error: BaseException) -> BaseException:
    """Return an error of its own for one of many waiters, since a traceback grows where one is raised twice."""
    if isinstance(error, StopIteration):  # A future takes none, and a coroutine raises it as this.
        another: Exception = RuntimeError("a decision raised StopIteration")
        another.__cause__ = error
        return another
    if not isinstance(error, EngineError):
        return error
    another = type(error)(str(error))
    another.__cause__ = error
    return another
