"""`accounts.json`: the accounts of a location, see `document`.

Invariants:
- a reader sees a whole state, the one before an edit or the one after: the file is replaced, never rewritten;
- edits exclude each other by a lock file, so none is lost, and are durable when they return;
- the file is readable by its owner only.
"""

import os
from errno import ENOTSUP
from pathlib import Path

from lazulite.auth.accounts.document import (
    Accounts,
    AccountsError,
    AccountStore,
    Change,
    read_accounts,
    write_accounts,
)
from lazulite.engine.durable_files import make_private, sync_directory

try:
    import fcntl
except ImportError:  # Windows has another lock.
    fcntl = None  # type: ignore[assignment]  # mypy knows the module of this platform only

FileState = tuple[int, int, int]
"""(inode, change time in ns, size): differs between any two states of the file, its permissions included."""

MAX_FILE_BYTES = 16 * 1024 * 1024
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)
"""Flags that only some platforms have; without the latter, Windows writes CR LF."""


class AccountFile(AccountStore):
    """The durable accounts of one location.

    Args:
        path: `accounts.json` under the location. It need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """See `AccountStore`."""
        return str(self.path.parent)

    def stored(self) -> Accounts | None:
        """See `AccountStore`."""
        return self.read()[1]

    def read(self) -> tuple[FileState | None, Accounts | None]:
        """Return the accounts and the state of the file that they were read from; None twice without a file.

        Raises:
            AccountsError: as `stored`.
        """
        try:
            with self.path.open("rb") as file:
                state = state_of(os.fstat(file.fileno()))
                text = file.read(MAX_FILE_BYTES)
        except FileNotFoundError:
            return None, None
        except OSError as error:
            raise AccountsError(f"cannot read {self.path}: {error.strerror}") from None
        return state, read_accounts(text, str(self.path))

    def edit(self, change: Change) -> Accounts:
        """See `AccountStore`."""
        try:
            make_private(self.path.parent)
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                _lock(lock)
                accounts = change(self.stored())
                replace_durably(self.path, write_accounts(accounts))
            finally:
                os.close(lock)
        except OSError as error:
            raise AccountsError(f"cannot write {self.path}: {error.strerror}") from None
        return accounts


def state_of(status: os.stat_result) -> FileState:
    """Return the state of a file from its status."""
    return status.st_ino, status.st_ctime_ns, status.st_size


def _lock(descriptor: int) -> None:
    """Wait for the lock of a file, which lasts until the file is closed.

    Raises:
        OSError: there is no such lock.
    """
    if fcntl is None:
        raise OSError(ENOTSUP, "this platform has no lock for accounts; set LAZULITE_ACCOUNTS")
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def replace_durably(path: Path, content: bytes) -> None:
    """Put `content` at `path`, whole or not at all, readable by its owner only; durable on return."""
    temporary = Path(f"{path}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_FOLLOW | _BINARY, 0o600)
    with open(descriptor, "wb") as file:
        # The mode above holds only for a file that did not exist, and less the umask.
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    os.replace(temporary, path)
    sync_directory(path.parent)
