"""The processes that write files below one directory: each has a slot, a small number, for as long as it lives.

    {slot}.process   locked while its process lives, by a lock that the kernel releases with the process

Invariants: a process takes a slot that has no file, and makes it. The file goes when the process ends in order, or when
everything of a slot that was left has been looked at. So what belongs to a slot that can be locked was left by a
process that is gone, and no new process has the same slot. Windows has no such lock, and one process.
"""

import errno
import importlib.util
import os
from collections.abc import Collection
from pathlib import Path
from threading import Lock

from lazulite.engine.durable_files import make_private

_LOCKS = importlib.util.find_spec("fcntl") is not None
if _LOCKS:
    import fcntl

SLOTS_MAX = 1024


class ProcessSlots:
    """The slots, and the one of this process. Every call may block.

    Args:
        directory: of the files; it is made when a slot is taken.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._turn = Lock()
        self._own: int | None = None
        self._locks: dict[int, int] = {}
        """The descriptors of the locks that this process has, by slot: of its own, and of some that were left."""

    def own(self) -> int:
        """Return the slot of this process; take a free one if it has none.

        Raises:
            OSError: none can be had.
        """
        with self._turn:
            if self._own is None:
                make_private(self._directory)
                self._own = self._free()
            return self._own

    def lock_left(self, slot: int) -> bool:
        """Lock a slot until `unlock_left`, unless another process has it; return whether it is this process's now.

        Raises:
            OSError: that cannot be found out.
        """
        own = self.own()
        with self._turn:
            return slot == own or slot in self._locks or self._locked(slot)

    def left(self) -> set[int]:
        """Lock the slots of dead processes until `unlock_left`, and return them.

        Raises:
            OSError: that cannot be found out.
        """
        own = self.own()
        found = {int(path.stem) for path in self._directory.glob("*.process") if path.stem.isdecimal()}
        return {slot for slot in found - {own} if self.lock_left(slot)}

    def unlock_left(self, swept: Collection[int]) -> None:
        """Unlock the slots that were left, and free those of which nothing remains to be looked at."""
        with self._turn:
            for slot in self._locks.keys() - {self._own}:
                self._unlock(slot, free=slot in swept)

    def release(self) -> None:
        """Free the slot of this process."""
        with self._turn:
            if self._own is not None:
                self._unlock(self._own, free=True)
                self._own = None

    def _free(self) -> int:
        if not _LOCKS:
            return 0
        for slot in range(SLOTS_MAX):
            if self._locked(slot, os.O_EXCL):
                return slot
        raise OSError(errno.EUSERS, os.strerror(errno.EUSERS))

    def _locked(self, slot: int, flags: int = 0) -> bool:
        """Lock a slot; return whether it is locked now."""
        if not _LOCKS:
            return True
        path = self._path(slot)
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
        except FileExistsError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), path.stat()):
                self._locks[slot] = lock
        except (BlockingIOError, FileNotFoundError):
            pass  # Another process has it, or freed it a moment ago.
        finally:
            if slot not in self._locks:
                os.close(lock)
        return slot in self._locks

    def _unlock(self, slot: int, *, free: bool) -> None:
        lock = self._locks.pop(slot, None)
        if lock is not None:
            if free:
                self._path(slot).unlink(missing_ok=True)
            os.close(lock)

    def _path(self, slot: int) -> Path:
        return self._directory / f"{slot}.process"
