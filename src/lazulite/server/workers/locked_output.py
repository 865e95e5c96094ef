"""A file that several processes write whole lines to.

A write that exceeds the bound of a pipe or a buffer is several writes, and lines of another process could come between
them. So each process locks the file meanwhile; the kernel releases the lock of a process that dies.
"""

import fcntl
import os

from lazulite.server.observability.line_writer import Output


class LockedOutput:
    """An `Output` of one process.

    Args:
        output: the file.
        lock: the descriptor of a file that all the processes share; see `new_lock`.
        place: the number of the lock, another one for each file, as a process does not exclude itself.
    """

    def __init__(self, output: Output, lock: int, place: int) -> None:
        self._output = output
        self._lock = lock
        self._place = place

    def write(self, data: bytes, /) -> None:
        """Write all of the data, blocking, without lines of other processes in between."""
        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, self._place)
        try:
            self._output.write(data)
            self._output.flush()
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, self._place)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""


def new_lock() -> int:
    """Return the descriptor of a file for locks, to be handed on to other processes."""
    return os.memfd_create("lazulite-locks", os.MFD_CLOEXEC)
