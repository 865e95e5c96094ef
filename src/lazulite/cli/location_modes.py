"""Who else on the machine could change or read a location: the modes of its files, looked at before it is served.

Whoever may write the location can replace the accounts and the store, so that is refused. Whoever may read the keys or
the rows needs no account, so the operator is told. What Lazulite makes itself is its owner's only.
"""

import os
from collections.abc import Callable
from pathlib import Path

from lazulite.config import ConfigError, account_file, store_path

_WRITABLE = 0o022
_ACCESSIBLE = 0o077


def refuse_writable(location: Path) -> None:
    """Refuse a location that others than its owner may write to; it may be missing.

    Raises:
        ConfigError: it is one. The text says what to do.
    """
    for path in (location, *_secrets(location)):
        mode = _mode(path)
        if mode & _WRITABLE:
            raise ConfigError(
                f"others than its owner may write {path} (mode {mode:04o}): chmod go-w {path}, "
                "or serve a new directory below it, which will be its owner's only"
            )


def tell_readable(location: Path, report: Callable[[str], None]) -> None:
    """Report, in a line for people each, what of a location's keys and rows others than its owner may read."""
    for path in _secrets(location):
        mode = _mode(path)
        if mode & _ACCESSIBLE:
            report(f"others than its owner may read {path} (mode {mode:04o}): chmod go= {path}")


def _secrets(location: Path) -> tuple[Path, ...]:
    return store_path(location), account_file(location).path


def _mode(path: Path) -> int:
    """Return the permissions of a file; 0 if it is missing, or cannot be looked at, which its user finds out."""
    try:
        return os.stat(path).st_mode & 0o7777
    except OSError:
        return 0
