"""Progress for people: on a terminal a bar that is drawn anew in its place, elsewhere a line now and then."""

import time
from collections.abc import Callable
from typing import TextIO

from lazulite.migration.progress import Tally

BAR_CELLS = 30
DRAW_SECONDS = 0.1
LINE_SECONDS = 5.0
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """What is told of a tally, often, shows some of it.

    Args:
        output: where to.
        timer: counts seconds.
    """

    def __init__(self, output: TextIO, timer: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._timer = timer
        self._draws = output.isatty()
        self._pause = DRAW_SECONDS if self._draws else LINE_SECONDS
        self._tally: Tally | None = None
        self._began = self._shown = timer()
        self._entities_before = 0

    def show(self, tally: Tally) -> None:
        """Show a tally, if the last time is a while ago."""
        now = self._timer()
        if tally is not self._tally:
            self._tally, self._began, self._entities_before = tally, now, tally.entities
        if now < self._shown + self._pause:
            return
        self._shown = now
        text = describe(tally, (tally.entities - self._entities_before) / max(now - self._began, 1e-3))
        self._output.write(f"{_CLEAR}{bar(tally)} {text}" if self._draws else f"lazulite: {text}\n")
        self._output.flush()

    def clear(self) -> None:
        """Clear the bar, so that the caller can print a line."""
        if self._draws:
            self._output.write(_CLEAR)
            self._output.flush()


def describe(tally: Tally, rate: float) -> str:
    """Return a tally in words; `rate` is of entities a second."""
    of = "" if tally.entities_total is None else f" of {tally.entities_total:,}"
    tables = f"{tally.tables_done:,} of {tally.tables:,} tables"
    return f"{tally.verb} {tally.entities:,}{of} entities ({rate:,.0f}/s), {tables}"


def bar(tally: Tally) -> str:
    """Return a bar: of entities, where their number is known, else of tables."""
    done, total = tally.tables_done, tally.tables
    if tally.entities_total is not None:
        done, total = tally.entities, tally.entities_total
    cells = min(BAR_CELLS, BAR_CELLS * done // max(total, 1))
    return f"[{'#' * cells}{'-' * (BAR_CELLS - cells)}]"
