"""Directories that survive a power cut.

Invariant: a directory for which `make_private` returned exists after a power cut. Its name is synced even if it existed
before: another process may have made it a moment ago, and been killed before its sync.
"""

import contextlib
import os
from pathlib import Path


def make_private(path: Path) -> None:
    """Make a directory and its missing parents for the owner only; their names are durable on return.

    Raises:
        OSError: it cannot be made, or not durably.
    """
    if path.is_dir():
        with contextlib.suppress(OSError):  # The parent may not be readable or syncable, as above a mount.
            sync_directory(path.parent)
        return
    make_private(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable; do nothing on Windows, which cannot sync directories."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
