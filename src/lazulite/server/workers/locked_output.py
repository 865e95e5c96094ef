"""A file that several processes write lines to, whole ones.

A write longer than a pipe's or a buffer's bound is several writes, between which another process would get in. So each
holds a lock meanwhile, which the kernel takes from a process that dies.
"""

import fcntl
import os

from lazulite.server.observability.line_writer import Output


class LockedOutput:
    """An `Output` of one process.

    Args:
        output: the file.
        lock: the descriptor of a file that all the processes have; see `new_lock`.
        place: which of its locks; one for each file and no two for the same, as a process does not exclude itself.
    """

    def __init__(self, output: Output, lock: int, place: int) -> None:
        self._output = output
        self._lock = lock
        self._place = place

    def write(self, data: bytes, /) -> None:
        """Write all of it, blocking, with nobody's lines in between."""
        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, self._place)
        try:
            self._output.write(data)
            self._output.flush()
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, self._place)

    def flush(self) -> None:
        """Do nothing: nothing waits."""


def new_lock() -> int:
    """Return the descriptor of a file for locks, to be handed on to other processes."""
    return os.memfd_create("lazulite-locks", os.MFD_CLOEXEC)
