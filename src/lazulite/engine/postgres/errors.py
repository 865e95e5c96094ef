"""Errors of the database and of its connections, as errors of the engine contract."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from lazulite.engine.contract import EngineError, EngineUnavailableError

RETRYABLE = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
"""The database undid the statement in favour of another one: it may be sent again."""

CHECK_FAILED = (asyncpg.DivisionByZeroError, asyncpg.UniqueViolationError)
"""A check of a script failed (see `sql_scripts`): nothing of it was done."""

SHARDS_CHANGED = (asyncpg.DivisionByZeroError, asyncpg.UndefinedTableError)
"""A node of a cluster has other shards than the statement names (see `citus.shard_pages`)."""

ALREADY_MADE = (
    asyncpg.DuplicateSchemaError,
    asyncpg.DuplicateTableError,
    asyncpg.DuplicateObjectError,
    asyncpg.UniqueViolationError,
)
"""Another transaction made the same schema or table meanwhile. The step at which they met decides which error it is."""

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
"""The connection is lost, and others that were opened at the same time may be lost too."""

_UNAVAILABLE = (
    *LOST,
    *RETRYABLE,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.LockNotAvailableError,
)
"""The database cannot be reached, is stopping, starting, full, a standby, or out of a resource."""

_OF_A_WORKER = "while executing command on "
"""The context that Citus gives to an error of its connection to a worker."""
_LOST_BY_LIBPQ = re.compile(
    r"server closed the connection unexpectedly|could not (send data to|receive data from) server"
    r"|no connection to the server|connection not open|SSL (SYSCALL error|connection has been closed)|$"
)
"""The start of the message if libpq lost that connection, and so has no SQLSTATE. The message may be empty."""
_LOST_BY_CITUS = (
    "failure on connection marked as essential: ",
    "could not commit transaction for shard ",
    "postmaster was shut down, exiting",
)
"""The start of the message if a statement or a commit failed on a worker, with an unknown outcome. The last one: the
coordinator was killed while it waited for a worker."""


@contextmanager
def worker_errors() -> Iterator[None]:
    """Convert the loss of a connection to a worker, which Citus reports as an internal error (XX000).

    The texts are those of Citus 13, in `remote_commands.c`, `remote_transaction.c` and `placement_connection.c`. Other
    internal errors pass.

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
    """Convert the errors of the database to engine errors, except `but`.

    Their texts are the first line of the database's message, which names no password and no row.

    Raises:
        EngineUnavailableError: the database cannot serve now.
        EngineError: the database rejected the statement.
    """
    try:
        yield
    except but:
        raise
    except _UNAVAILABLE as error:
        raise EngineUnavailableError(f"the database cannot serve now: {line(error)}") from error
    except asyncpg.PostgresError as error:
        raise EngineError(f"the database rejected a statement: {line(error)}") from error


def line(error: BaseException) -> str:
    """Return the first line of an error's message, never empty."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


def copy_for_waiter(error: BaseException) -> BaseException:
    """Return an error for one of many waiters: a traceback grows where one error is raised twice."""
    if isinstance(error, StopIteration):  # A future accepts none, and a coroutine raises it as a RuntimeError.
        another: Exception = RuntimeError("the decision of a commit raised StopIteration")
        another.__cause__ = error
        return another
    if not isinstance(error, EngineError):
        return error
    another = type(error)(str(error))
    another.__cause__ = error
    return another
