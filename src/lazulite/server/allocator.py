"""The allocator of the C library: it keeps some of what is freed, for the next window of a body.

By default, glibc returns a freed window to the kernel. The next one then costs a page fault for every 4 KiB. What lies
between blocks that are in use it keeps for good, so a crowd of clients would leave its memory behind.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Mapping

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt`. Source: <malloc.h> of glibc."""
_KEPT_BYTES = 8 << 20
"""The bytes that each arena keeps, at its top."""
_MAPPED_BYTES = 8 << 20
"""What has at least this size is mapped by itself, and so returned at once. Bodies of tables and queues are smaller."""
_SETTINGS = "MALLOC_", "GLIBC_TUNABLES"
_PEAK_BYTES = 32 << 20
_FALLEN_TO = 4
"""Memory goes back to the kernel when what is held falls to this part of its peak, if that was large."""
_EVICTED_BYTES = 64 << 20
"""It also goes back when so much was taken from clients, as a full budget has a level peak while they come and go."""


def keep_freed_memory(
    environment: Mapping[str, str] = os.environ, load: Callable[[None], object] = ctypes.CDLL
) -> bool:
    """Make the process keep a bounded amount of freed memory; return whether that is so now.

    It leaves a C library other than glibc alone, and settings of the allocator in the environment.

    Args:
        environment: of the process.
        load: returns the functions of the process.
    """
    if sys.platform != "linux" or any(name.startswith(_SETTINGS) for name in environment):
        return False
    mallopt = getattr(load(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES) and mallopt(_TRIM_THRESHOLD, _KEPT_BYTES))


def return_freed_memory(load: Callable[[None], object] = ctypes.CDLL) -> None:
    """Return what is freed to the kernel, if the C library can do that. It blocks for some milliseconds."""
    trim = getattr(load(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


class Peak:
    """Tells when memory that was held for clients is worth returning."""

    __slots__ = ("_evicted_bytes", "_peak_bytes")

    def __init__(self) -> None:
        self._peak_bytes = 0
        self._evicted_bytes = 0

    def has_fallen(self, held_bytes: int, evicted_bytes: int) -> bool:
        """Return whether much less is held than at the peak since the last time that it was so, or much was evicted.

        Args:
            held_bytes: for clients, now.
            evicted_bytes: taken from clients since the start.
        """
        self._peak_bytes = max(self._peak_bytes, held_bytes)
        has_gone = self._peak_bytes >= _PEAK_BYTES and held_bytes * _FALLEN_TO <= self._peak_bytes
        if not has_gone and evicted_bytes - self._evicted_bytes < _EVICTED_BYTES:
            return False
        self._peak_bytes, self._evicted_bytes = held_bytes, evicted_bytes
        return True
