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


@cache
def shelter() -> Path:
    """Return this process's shelter. Everybody may enter it, and nobody else write to it."""
    directory = Path(tempfile.mkdtemp(prefix="lazulite-postgres-"))
    directory.chmod(0o755)
    waiting = subprocess.Popen(
        [sys.executable, "-S", "-E", guard.__file__, directory], stdin=subprocess.PIPE, start_new_session=True
    )
    atexit.register(waiting.communicate)  # It removes the shelter, and then ends.
    return directory
