"""The records of what processes do to the files below a directory, by `recorder.c`, and the cut of their power.

Every process that works on the directory is started with `Recorder.variables` in its environment.
"""

import fcntl
import mmap
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from shutil import which
from typing import NamedTuple

COMPILER = "gcc"
SOURCE = Path(__file__).with_name("recorder.c")
_STATE = struct.Struct("=QQQQQ")
_HEAD = struct.Struct("=IIIIQQ")
_CUT_AT, _LAST_SYNC_US, _OFF = slice(8, 16), slice(24, 32), slice(32, 40)
_NEVER = 2**64 - 1


class Kind(IntEnum):
    """What was called, see `recorder.c`."""

    CREATE = 1
    WRITE = 2
    RESIZE = 3
    SYNC = 4
    SYNCED = 5
    MKDIR = 6
    RENAME = 7
    LINK = 8
    UNLINK = 9


class Record(NamedTuple):
    """One call: `number` is an offset, a size, or which call began a sync; `first` the bytes written or a path."""

    kind: Kind
    inode: int
    number: int
    first: bytes
    second: bytes


def compiler_missing() -> bool:
    """Say whether this machine cannot compile the recorder."""
    return which(COMPILER) is None


def compiled(directory: Path) -> Path:
    """Compile the recorder into a directory; return the library."""
    library = directory / "recorder.so"
    command = [COMPILER, "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


class Recorder:
    """The records of one run, from nothing to the cut."""

    def __init__(self, library: Path, root: Path, directory: Path, sync_seconds: float = 0.0) -> None:
        """Record what happens below `root`; `directory`, elsewhere, has the records of the newest run.

        `sync_seconds` is how long the disk takes to sync.
        """
        self._log = directory / "calls"
        self._log.write_bytes(b"")
        state = directory / "state"
        state.write_bytes(_STATE.pack(0, _NEVER, int(sync_seconds * 1e6), 0, 0))
        self._lock = state.open("r+b")
        self._state = mmap.mmap(self._lock.fileno(), _STATE.size)
        self.variables = {
            "LD_PRELOAD": str(library),
            "RECORDER_ROOT": str(root),
            "RECORDER_LOG": str(self._log),
            "RECORDER_STATE": str(state),
        }

    @property
    def calls(self) -> int:
        """How many calls there were so far."""
        calls: int = _STATE.unpack(self._state[:])[0]
        return calls

    @property
    def off(self) -> bool:
        """Whether the power is off: nothing more will be recorded."""
        return any(self._state[_OFF])

    def cut_after(self, calls: int, last_sync_seconds: float = 0.0) -> None:
        """Cut the power after so many more calls; in the next sync, if `last_sync_seconds` says how long that takes."""
        self._set(_LAST_SYNC_US, int(last_sync_seconds * 1e6))
        self._set(_CUT_AT, self.calls + calls)

    @contextmanager
    def cutting(self) -> Iterator[None]:
        """Cut the power now, if it is on; in the block no call is under way, and processes may be killed."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            self._set(_OFF, 1)
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _set(self, field: slice, value: int) -> None:
        self._state[field] = value.to_bytes(8, sys.byteorder)

    def records(self) -> Iterator[Record]:
        """Yield all calls in their order."""
        content = memoryview(self._log.read_bytes())
        at = 0
        while at < len(content):
            kind, first, second, _, inode, number = _HEAD.unpack_from(content, at)
            at += _HEAD.size
            middle, end = at + first, at + first + second
            yield Record(Kind(kind), inode, number, bytes(content[at:middle]), bytes(content[middle:end]))
            at = end

    def close(self) -> None:
        """Let go of the files."""
        self._state.close()
        self._lock.close()
