"""The names of sample tables, queues and containers, and which of them are left over by a run that was killed.

A name tells until when its run takes at most, so that any machine can tell a dead one after that time. On the machine
and by the user of the run it is known at once: a run holds a lock, which ends with its process.
"""

import fcntl
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "lazulitestress"
"""How all names begin. Letters and digits in lower case are good for tables, queues and containers."""
_NAME = re.compile(PREFIX + r"([0-9a-f]{8})[0-9a-f]{8}", re.ASCII)
GRACE_SECONDS = 3600
"""How long a run may take beyond its plan."""


def new_name(ends_at: float) -> str:
    """Return the name of the sample of a run that ends at a Unix time at the latest, by its plan."""
    return f"{PREFIX}{int(ends_at) + GRACE_SECONDS:08x}{secrets.token_hex(4)}"


def left_over(names: Sequence[str], now: float, folder: Path | None = None) -> Sequence[str]:
    """Return those of the names that are samples of dead runs.

    Args:
        names: tables, queues or containers.
        now: the Unix time.
        folder: of the locks; None: that of the user.
    """
    dead = set(_unlocked(folder or lock_folder()))
    found = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is not None and (name in dead or int(match[1], 16) < now):
            found.append(name)
    return found


def lock_folder() -> Path:
    """Return the folder of the locks of this user, which no other user can write to.

    Raises:
        OSError: it cannot be made, or is of another user.
    """
    folder = Path(tempfile.gettempdir()) / f"lazulite-stress-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or folder.is_symlink():
        raise PermissionError(f"{folder} is not a folder of this user alone")
    return folder


@contextmanager
def locked(name: str, folder: Path | None = None) -> Iterator[None]:
    """Hold the lock of a name inside the block. The file stays if the process is killed; its lock does not.

    Raises:
        OSError: as `lock_folder`.
    """
    path = (folder or lock_folder()) / name
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def forget(name: str, folder: Path | None = None) -> None:
    """Remove the file of a dead run, whose sample is gone."""
    ((folder or lock_folder()) / name).unlink(missing_ok=True)


def _unlocked(folder: Path) -> Iterator[str]:
    """Yield the names whose file is there and whose lock is free."""
    for path in folder.iterdir():
        if _NAME.fullmatch(path.name) is None:
            continue
        with suppress(OSError), path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield path.name
