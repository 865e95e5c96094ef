"""How long `lazulite.testing.server` takes to be ready and to stop: `python -m benchmarks.embedded_start`."""

import statistics
import sys
import time

from lazulite.testing import server

STARTS = 50
READY_MS_MAX = 100
"""Ready within this time after the import."""


def main() -> int:
    """Print the times in milliseconds; return 1 if the median start misses the bound."""
    ready_ms, stopped_ms = [], []
    for _ in range(STARTS):
        began_s = time.perf_counter()
        with server():
            ready_ms.append((time.perf_counter() - began_s) * 1000)
            began_s = time.perf_counter()
        stopped_ms.append((time.perf_counter() - began_s) * 1000)
    for name, times in (("ready", ready_ms), ("stopped", stopped_ms)):
        print(f"{name}: first {times[0]:.1f} ms, median {statistics.median(times):.1f} ms, longest {max(times):.1f} ms")
    return int(statistics.median(ready_ms) > READY_MS_MAX)


if __name__ == "__main__":
    sys.exit(main())
