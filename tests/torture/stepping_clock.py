"""A wall clock that steps on request, from another process, while the server runs and while it does not.

The clock is a file of one number that the server has mapped into its memory: the nanoseconds by which it is wrong, or,
from `STILL` on, the time at which it stands still. In the server `time.time` and `time.time_ns` are replaced, where
all of Lazulite gets the time of day; the monotonic clock stays as it is, as when the clock of a machine is set.

Why not libfaketime: it would also give RocksDB its time, of which nothing depends here but the names of its log files
and the age of its tables; but it would give the wrong time to the waits in C that end at a time of day, each step would
cost a file's reading or a new process, and it is one more thing to install. Setting the machine's own clock takes
rights that a test should not have.
"""

import mmap
import os
import struct
import time
from pathlib import Path

VARIABLE = "LAZULITE_TORTURE_CLOCK"
"""Names the file."""
STILL = 10**18
"""Every time of day since 2001 is greater, in nanoseconds, and every error is smaller."""
_NUMBER = struct.Struct("=q")


class SteppingClock:
    """The hand on the clock, in the campaign's process."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(_NUMBER.pack(0))
        self._map = _mapped(path)
        self.path = path
        self.error_ns = 0

    def step(self, nanoseconds: int) -> None:
        """Set it forward, or back; it runs."""
        self.error_ns += nanoseconds
        self._set(self.error_ns)

    def be_right(self) -> None:
        """Set it to the true time."""
        self.step(-self.error_ns)

    def stand_still(self) -> None:
        """Stop it at what it shows; the next step makes it run."""
        self._set(time.time_ns() + self.error_ns)

    def _set(self, number: int) -> None:
        _NUMBER.pack_into(self._map, 0, number)

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()


def install() -> None:
    """Give this process the clock in the file that the environment names."""
    shown, true_ns = _mapped(Path(os.environ[VARIABLE])), time.time_ns

    def time_ns() -> int:
        number: int = _NUMBER.unpack_from(shown)[0]
        return number if number >= STILL else true_ns() + number

    vars(time).update(time_ns=time_ns, time=lambda: time_ns() / 1e9)


def _mapped(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), _NUMBER.size)
