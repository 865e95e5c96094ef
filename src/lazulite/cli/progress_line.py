"""Show progress on stderr: on a terminal a line that is rewritten in place, elsewhere a line every few seconds."""

import io
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TextIO

BAR_CELLS = 30
DRAW_SECONDS = 0.1
LINE_SECONDS = 5.0
_CLEAR = "\r\x1b[K"
_MEBIBYTE = 1 << 20


class Progress(Protocol):
    """What is shown."""

    @property
    def done(self) -> int:
        """What the rate is of; it grows."""
        ...

    @property
    def of_total(self) -> tuple[int, int] | None:
        """How much is done of what, for a bar; None while that is unknown."""
        ...

    def describe(self, rate: float) -> str:
        """Return the progress in words, given the growth of `done` in a second."""
        ...


@dataclass(slots=True)
class BytesDone:
    """Bytes that were read or written."""

    verb: str
    """The past participle for messages, such as `copied`."""
    total: int | None = None
    """None: unknown."""
    done: int = 0

    @property
    def of_total(self) -> tuple[int, int] | None:
        """See `Progress`."""
        return None if self.total is None else (self.done, self.total)

    def describe(self, rate: float) -> str:
        """See `Progress`."""
        of = "" if self.total is None else f" of {_size(self.total)}"
        return f"{self.verb} {_size(self.done)}{of} ({_size(rate)}/s)"


@dataclass(slots=True)
class RowsRead:
    """Rows of a store that were read, whose number is not known before."""

    done: int = 0

    @property
    def of_total(self) -> None:
        """See `Progress`."""
        return None

    def describe(self, rate: float) -> str:
        """See `Progress`."""
        return f"{self.done:,} rows read ({rate:,.0f}/s)"


@dataclass(slots=True)
class StepsDone:
    """Steps that were done, one of which is under way."""

    verb: str
    """The present participle for messages, such as `upgrading`."""
    total: int
    done: int = 0

    @property
    def of_total(self) -> tuple[int, int]:
        """See `Progress`."""
        return self.done, self.total

    def describe(self, _: float) -> str:
        """See `Progress`."""
        return f"{self.verb}: step {min(self.done + 1, self.total)} of {self.total}"


class ProgressLine:
    """Show progress that is reported often, at a bounded rate. As a context manager, clear the line at the end.

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
        self._done_before = 0

    @classmethod
    def of_user(cls, *, silent: bool = False) -> "ProgressLine":
        """Return the one on stderr; a silent one writes nothing there."""
        return cls(io.StringIO() if silent else sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, progress: Progress, *, at_once: bool = False) -> None:
        """Show the progress if the pause since the last display is over, or `at_once`."""
        now = self._timer()
        if progress is not self._progress:
            self._progress, self._began, self._done_before = progress, now, progress.done
        if now < self._shown + self._pause and not at_once:
            return
        self._shown = now
        text = progress.describe((progress.done - self._done_before) / max(now - self._began, 1e-3))
        self._output.write(f"{_CLEAR}{bar(progress)}{text}" if self._draws else f"lazulite: {text}\n")
        self._output.flush()

    def clear(self) -> None:
        """Clear the line, so that the caller can print another one."""
        if self._draws:
            self._output.write(_CLEAR)
            self._output.flush()


def bar(progress: Progress) -> str:
    """Return a bar with a blank behind it; "" while it is unknown how much there is to do."""
    if progress.of_total is None:
        return ""
    done, total = progress.of_total
    cells = min(BAR_CELLS, BAR_CELLS * done // max(total, 1))
    return f"[{'#' * cells}{'-' * (BAR_CELLS - cells)}] "


def _size(size_bytes: float) -> str:
    return f"{size_bytes / _MEBIBYTE:,.1f} MiB"
