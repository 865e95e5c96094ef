"""Checks the file modes of a location before it is served, so that no other user can change or read it.

A user that may write the location can replace the accounts and the store, and one that may read it needs no account. A
location that every user may write is rejected. What its group may write, and what others may read, is reported: a group
is often the owner's own, and volumes of containers are writable by one. What Lazulite makes itself is its owner's only.
"""

import os
from collections.abc import Callable
from pathlib import Path

from lazulite.settings.config import ConfigError, account_file, content_path, store_path

_WRITABLE_BY_ALL = 0o002
_WRITABLE = 0o022
_ACCESSIBLE = 0o077


def reject_writable(location: Path) -> None:
    """Reject a location that every user may write to; it may be missing.

    Raises:
        ConfigError: it is one. The text says what to do.
    """
    for path in (location, *_secrets(location)):
        mode = _mode(path)
        if mode & _WRITABLE_BY_ALL:
            raise ConfigError(
                f"every user may write to {path} (mode {mode:04o}): run chmod go-w {path}, "
                "or pass a new directory below it as --location"
            )


def report_readable(location: Path, report: Callable[[str], None]) -> None:
    """Report files of a location that users other than its owner may read or write, one line each."""
    mode = _mode(location)
    if mode & _WRITABLE:
        report(f"users other than the owner may write to {location} (mode {mode:04o}): run chmod go-w {location}")
    for path in _secrets(location):
        mode = _mode(path)
        if mode & _ACCESSIBLE:
            report(f"users other than the owner may read {path} (mode {mode:04o}): run chmod go= {path}")


def _secrets(location: Path) -> tuple[Path, ...]:
    return store_path(location), content_path(location), account_file(location).path


def _mode(path: Path) -> int:
    """Return the permissions of a file; 0 if it is missing, cannot be looked at, or is on Windows, which has others."""
    if not hasattr(os, "getuid"):
        return 0
    try:
        return os.stat(path).st_mode & 0o7777
    except OSError:
        return 0
