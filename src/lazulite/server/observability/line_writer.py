"""Lines to a file without holding up the event loop.

Invariants: `write` never blocks and never raises. The queue is bounded; dropped lines are counted, and the count is
written when there is room again. One daemon thread writes, and `close` returns when all lines are written, or the file
cannot take them.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

_FLUSH_SECONDS = 0.1
"""The seconds between two polls of the thread. It polls, so that a busy event loop never pays for waking it."""

_CLOSE_SECONDS_MAX = 5.0


class Output(Protocol):
    """A binary file, unbuffered or not."""

    def write(self, data: bytes, /) -> object:
        """Write, blocking."""
        ...

    def flush(self) -> object:
        """Hand on what is buffered."""
        ...


class LineWriter:
    """A bounded queue of lines and the thread that writes them.

    Args:
        output: closed by its owner, after `close`.
        lines_max: lines that may wait.
        format_dropped: returns the line that reports a number of dropped lines.
    """

    def __init__(self, output: Output, lines_max: int, format_dropped: Callable[[int], str]) -> None:
        self._output = output
        self._lines_max = lines_max
        self._format_dropped = format_dropped
        self._lines: deque[str] = deque()
        self._dropped_count = 0
        self._lost_count = 0
        self._reported_count = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Queue a line, given without its line end."""
        if len(self._lines) < self._lines_max:
            self._lines.append(line)
        else:
            self._dropped_count += 1

    def close(self) -> None:
        """Write what waits and end the thread; gives up on a file that blocks for seconds."""
        self._closing.set()
        self._thread.join(_CLOSE_SECONDS_MAX)

    def _run(self) -> None:
        while not self._closing.wait(_FLUSH_SECONDS):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        # Each count has one writer: the event loop counts what it dropped, this thread what the file did not take.
        missing_count = self._dropped_count + self._lost_count
        if missing_count > self._reported_count:
            lines.append(self._format_dropped(missing_count - self._reported_count))
        if not lines:
            return
        try:
            self._output.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
            self._output.flush()
        except (
            OSError,
            ValueError,
        ):  # A full disk, a closed pipe, a file closed by its owner: reported once it is back.
            self._lost_count += len(lines) - (missing_count > self._reported_count)
        else:
            self._reported_count = missing_count
