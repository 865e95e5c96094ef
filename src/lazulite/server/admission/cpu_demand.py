"""How much processor time a thread would have used, had it been given all that it asked for.

Processor time alone would not tell a thread that sleeps from one that is kept from working by other processes.
"""

import os
import time

_SCHEDSTAT = "/proc/thread-self/schedstat"
"""Linux: nanoseconds on the processor (as of the last look at the clock), on its waiting list, and a count."""


def demand_seconds() -> float:
    """Return the seconds that this thread has had the processor or has waited for it, the latter if that is known."""
    return time.thread_time() + _waited_seconds()


def _waited_seconds() -> float:
    try:
        file = os.open(_SCHEDSTAT, os.O_RDONLY)
    except OSError:
        return 0.0
    try:
        return int(os.read(file, 100).split()[1]) / 1e9
    finally:
        os.close(file)
