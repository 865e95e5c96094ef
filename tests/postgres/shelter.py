"""A directory that is gone when this process is, with every process that works in it, however this process ends.

A guard process waits at the other end of a pipe. The pipe closes when this process exits, or is killed.
"""

import atexit
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from . import guard


def shelter(parent: Path | None = None) -> Path:
    """Return this process's shelter in a directory, else where temporary files go.

    All users may enter it; only its owner may write to it.
    """
    return _shelter(parent)


@cache
def _shelter(parent: Path | None) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="lazulite-postgres-", dir=parent))
    directory.chmod(0o755)
    waiting = subprocess.Popen(
        [sys.executable, "-S", "-E", guard.__file__, directory], stdin=subprocess.PIPE, start_new_session=True
    )
    atexit.register(waiting.communicate)  # It removes the shelter, and then ends.
    return directory
