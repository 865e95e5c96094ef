"""An open database and its group commit, which begin and end together."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from rocksdict import Rdict, WriteBatch

from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.engine.group_commit import GroupCommit
from lazulite.engine.keys import META_PREFIX
from lazulite.engine.rocks_errors import STORE_ERRORS, StalledError
from lazulite.engine.rocks_options import write_options

Failpoints = Mapping[str, Callable[[], None]]
"""Functions called at named moments, for tests: `before_write` (on the loop, before a batch is written), `before_sync`
and `after_sync` (in the worker thread). What they raise counts as the failure of that step."""

STAMP_KEY = META_PREFIX + b"stamp"
"""The greatest stamp given so far: 8 bytes, big endian."""


class Store:
    """Writes to a database and makes the writes durable, until one of either fails."""

    __slots__ = ("_before_write", "_failpoints", "_options", "_to_disk", "database", "group")

    def __init__(self, database: Rdict, to_disk: bool, worker: Executor, failpoints: Failpoints) -> None:
        """Nothing in `database` may be undurable. `to_disk` says whether there is a disk to sync, in `worker`."""
        self.database = database
        self.group = GroupCommit(self._sync, worker)
        self._to_disk = to_disk
        self._options = write_options()
        self._failpoints = failpoints
        self._before_write = failpoints.get("before_write")

    def last_stamp(self) -> int:
        """Return the greatest stamp that the database knows, 0 at first."""
        with STORE_ERRORS:
            return int.from_bytes(self.database.get(STAMP_KEY) or b"", "big")

    def check_writable(self) -> None:
        """Raise EngineUnavailableError after a failure."""
        if self.group.failure is not None:
            raise EngineUnavailableError("the store could not write and waits for the disk to recover")

    def write(self, batch: WriteBatch, stamp: int) -> None:
        """Put a batch and the stamp into the database, undurable as yet.

        Raises:
            StalledError: nothing was written; try again later.
            EngineError: it failed, and no more is written here.
        """
        batch.put(STAMP_KEY, stamp.to_bytes(8, "big"))
        try:
            with STORE_ERRORS:
                if self._before_write is not None:
                    self._before_write()
                self.database.write(batch, self._options)
        except StalledError:
            raise
        except EngineError as error:
            self.group.fail(error)
            raise

    def _sync(self) -> None:
        """Make all that was written durable; runs in the worker's thread."""
        with STORE_ERRORS:
            self._fail_at("before_sync")
            self.database.flush_wal(sync=self._to_disk)
            self._fail_at("after_sync")

    def _fail_at(self, name: str) -> None:
        failpoint = self._failpoints.get(name)
        if failpoint is not None:
            failpoint()
