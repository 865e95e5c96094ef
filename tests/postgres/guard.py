"""Ends what works below a directory, and removes it. A program without imports of the project, so it starts quickly.

A process *works below* a directory when its working directory is there: PostgreSQL's processes all are in their
server's data. That stays true of no other process, whatever becomes of a process id.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import sys
from pathlib import Path

SEGMENT_LINE = 6
"""Of the file that a running server keeps: a shared memory segment's key and id."""
IPC_RMID = 0


def processes(directory: Path) -> list[int]:
    """Return the ids of the processes that work below a directory."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if (each / "cwd").readlink().is_relative_to(directory):
                    found.append(int(each.name))
            except OSError:  # It is gone, or belongs to another user.
                continue
    return found


def send(directory: Path, number: signal.Signals) -> bool:
    """Send a signal to every process that works below a directory; say whether there were any."""
    found = processes(directory)
    for each in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, number)
    return bool(found)


def kill(directory: Path) -> None:
    """Kill every process that works below a directory; return when they are gone."""
    while send(directory, signal.SIGKILL):
        continue


def remove(directory: Path) -> None:
    """Kill what works below a directory, then remove it, with the shared memory of servers that had no time to."""
    kill(directory)
    for file in directory.glob("**/postmaster.pid"):
        for line in file.read_text().splitlines()[SEGMENT_LINE:][:1]:
            ctypes.CDLL(None).shmctl(int(line.split()[1]), IPC_RMID, None)
    shutil.rmtree(directory)


if __name__ == "__main__":
    sys.stdin.read()
    remove(Path(sys.argv[1]))
