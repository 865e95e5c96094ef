"""A directory for the sockets of the workers, closed to other users, that a killed process does not leave forever.

The process that makes the directory holds a lock on it (flock) as long as it lives, however it ends. So a directory
that can be locked is abandoned, and the next process that makes one removes it.

Invariant: a directory that a process uses is locked by it. Another process may lock a new directory before its maker
does, and remove it; then the maker makes another one.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "lz-peers-"
"""Short: the path of a socket has at most 107 bytes on Linux, and 103 on macOS."""


@contextmanager
def socket_directory(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new directory; remove the abandoned ones of this user first, and this one at the end.

    Args:
        parent: where it is made; None: the system's directory for temporary files.

    Raises:
        OSError: none can be made.
    """
    within = Path(tempfile.gettempdir()) if parent is None else parent
    for path in within.glob(f"{PREFIX}*"):
        _remove_abandoned(path)
    path, lock = _new(within)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _new(within: Path) -> tuple[Path, int]:
    """Return a new directory and the descriptor that locks it, which no other program inherits."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=within))  # Its mode is 0700.
        lock = _locked(path)
        if lock is not None:
            return path, lock


def _remove_abandoned(path: Path) -> None:
    lock = _locked(path)
    if lock is not None:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _locked(path: Path) -> int | None:
    """Lock a directory of this user; None if it is another's, is in use, or was removed."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_uid == os.getuid() and os.path.samestat(os.fstat(lock), os.stat(path)):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None
