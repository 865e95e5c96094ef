"""A timer of the event loop that is exact to some microseconds, where the system has one as a file (Linux).

Timers of uvloop have steps of 1 ms, which would count as the latency of requests that are sent at a rate.
"""

import asyncio
import ctypes
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

_MONOTONIC, _ABSOLUTE = 1, 1
_NANOSECONDS = 1_000_000_000


class _Moment(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerValue(ctypes.Structure):
    """An `itimerspec`: an interval, which is 0 here, and the time of the next alarm."""

    _fields_ = (("interval", _Moment), ("value", _Moment))


class Timer:
    """Calls a function at a time of `time.monotonic`, once for each `set`, in the running event loop."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call, self._loop = call, asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._file = -1
        if sys.platform == "linux":
            self._library = ctypes.CDLL(None, use_errno=True)
            self._file = self._library.timerfd_create(_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file >= 0:
            self._loop.add_reader(self._file, self._ring)

    def set(self, at: float) -> None:
        """Have the function called at a time, in place of an earlier or later one."""
        if self._file < 0:
            self.stop()
            self._handle = self._loop.call_later(max(0.0, at - time.monotonic()), self._call)
            return
        seconds, nanoseconds = divmod(max(1, int(at * _NANOSECONDS)), _NANOSECONDS)
        setting = _TimerValue(_Moment(0, 0), _Moment(seconds, nanoseconds))
        self._library.timerfd_settime(self._file, _ABSOLUTE, ctypes.byref(setting), None)

    def stop(self) -> None:
        """Have the function not called."""
        if self._handle is not None:
            self._handle.cancel()
        if self._file >= 0:
            self._library.timerfd_settime(self._file, 0, ctypes.byref(_TimerValue()), None)

    def close(self) -> None:
        """Free the timer."""
        self.stop()
        if self._file >= 0:
            self._loop.remove_reader(self._file)
            os.close(self._file)
            self._file = -1

    def _ring(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._file, 8)
            self._call()
