"""The allocator of the C library: it keeps some of what is freed, for the next window of a body.

By default, glibc returns a freed window to the kernel. The next one then costs a page fault for every 4 KiB.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Mapping

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt`. Source: <malloc.h> of glibc."""
_KEPT_BYTES = 8 << 20
"""Of each arena, at its top."""
_MAPPED_BYTES = 8 << 20
"""What has at least this size is mapped by itself, and so returned at once. Bodies of tables and queues are smaller."""
_SETTINGS = "MALLOC_", "GLIBC_TUNABLES"


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
