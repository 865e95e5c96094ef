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
        self._entities_before = 0

    def show(self, progress: Progress) -> None:
        """Show the progress if the pause since the last display is over."""
        now = self._timer()
        if progress is not self._progress:
            self._progress, self._began, self._entities_before = progress, now, progress.entities
        if now < self._shown + self._pause:
            return
        self._shown = now
        text = describe(progress, (progress.entities - self._entities_before) / max(now - self._began, 1e-3))
        self._output.write(f"{_CLEAR}{bar(progress)} {text}" if self._draws else f"lazulite: {text}\n")
        self._output.flush()

    def clear(self) -> None:
        """Clear the bar, so that the caller can print a line."""
        if self._draws:
            self._output.write(_CLEAR)
            self._output.flush()


def describe(progress: Progress, rate: float) -> str:
    """Return the progress in words. `rate` is in entities per second."""
    of = "" if progress.entities_total is None else f" of {progress.entities_total:,}"
    tables = f"{progress.tables_done:,} of {progress.tables:,} tables"
    return f"{progress.verb} {progress.entities:,}{of} entities ({rate:,.0f}/s), {tables}"


def bar(progress: Progress) -> str:
    """Return a bar of entities if their total is known, else of tables."""
    done, total = progress.tables_done, progress.tables
    if progress.entities_total is not None:
        done, total = progress.entities, progress.entities_total
    cells = min(BAR_CELLS, BAR_CELLS * done // max(total, 1))
    return f"[{'#' * cells}{'-' * (BAR_CELLS - cells)}]"
