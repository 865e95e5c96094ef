"""Show progress: on a terminal a bar that is redrawn in place, elsewhere a line every few seconds."""

import time
from collections.abc import Callable
from typing import TextIO

from lazulite.migration.progress import Progress

BAR_CELLS = 30
DRAW_SECONDS = 0.1
LINE_SECONDS = 5.0
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Show progress that is reported often, at a bounded rate.

    Args:
        output: the stream to write to.
        timer: returns seconds.
    """

    def __init__(self, output: TextIO, timer: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._timer = timer
        self._draws = output.isatty()
        self._pause = DRAW_SECONDS if self._draws else LINE_SECONDS
        self._progress: Progress | None = None
        self._began = self._shown = timer()
        self._rows_before = 0

    def show(self, progress: Progress) -> None:
        """Show the progress if the pause since the last display is over."""
        now = self._timer()
        if progress is not self._progress:
            self._progress, self._began, self._rows_before = progress, now, progress.rows
        if now < self._shown + self._pause:
            return
        self._shown = now
        text = describe(progress, (progress.rows - self._rows_before) / max(now - self._began, 1e-3))
        self._output.write(f"{_CLEAR}{bar(progress)} {text}" if self._draws else f"lazulite: {text}\n")
        self._output.flush()

    def clear(self) -> None:
        """Clear the bar, so that the caller can print a line."""
        if self._draws:
            self._output.write(_CLEAR)
            self._output.flush()


def describe(progress: Progress, rate: float) -> str:
    """Return the progress in words. `rate` is in rows a second."""
    of = "" if progress.rows_total is None else f" of {progress.rows_total:,}"
    parts = f"{progress.parts_done:,} of {progress.parts:,} parts"
    return f"{progress.verb} {progress.rows:,}{of} rows ({rate:,.0f}/s), {parts}"


def bar(progress: Progress) -> str:
    """Return a bar of rows if their total is known, else of parts."""
    done, total = progress.parts_done, progress.parts
    if progress.rows_total is not None:
        done, total = progress.rows, progress.rows_total
    cells = min(BAR_CELLS, BAR_CELLS * done // max(total, 1))
    return f"[{'#' * cells}{'-' * (BAR_CELLS - cells)}]"
