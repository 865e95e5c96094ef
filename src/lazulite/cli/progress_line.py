"""Show progress on stderr: on a terminal a line that is rewritten in place, elsewhere a line every few seconds.

For machines, each line is an object of JSON, whose `event` is `progress`. Invariant: on a terminal, the line is never
wider than that, as only the last row of it could be cleared.
"""

import io
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, Self, TextIO

BAR_CELLS = 30
_BAR_CELLS_MIN = 10
"""A shorter bar shows too little."""
_COLUMNS = 80
"""The width of a terminal that does not tell it."""
DRAW_SECONDS = 0.1
LINE_SECONDS = 5.0
JSON_SECONDS = 1.0
_ESTIMATE_SECONDS = 2.0
"""Before this time, a rate says little about the time that is left."""
_CLEAR = "\r\x1b[K"
_MEBIBYTE = 1 << 20


class Progress(Protocol):
    """What is shown."""

    @property
    def verb(self) -> str:
        """What is done, as a participle."""
        ...

    @property
    def done(self) -> int:
        """What the rate is of; it grows."""
        ...

    @property
    def counts(self) -> Mapping[str, int | None]:
        """What machines are told, by names such as `bytes` and `bytes_total`; None: unknown."""
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

    @property
    def counts(self) -> Mapping[str, int | None]:
        """See `Progress`."""
        return {"bytes": self.done, "bytes_total": self.total}

    def describe(self, rate: float) -> str:
        """See `Progress`."""
        of = "" if self.total is None else f" of {size_text(self.total)}"
        return f"{self.verb} {size_text(self.done)}{of} ({size_text(rate)}/s)"


@dataclass(slots=True)
class RowsRead:
    """Rows of a store that were read, whose number is not known before."""

    done: int = 0
    verb: str = "read"

    @property
    def of_total(self) -> None:
        """See `Progress`."""
        return None

    @property
    def counts(self) -> Mapping[str, int | None]:
        """See `Progress`."""
        return {"rows": self.done}

    def describe(self, rate: float) -> str:
        """See `Progress`."""
        return f"{self.done:,} rows {self.verb} ({rate:,.0f}/s)"


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

    @property
    def counts(self) -> Mapping[str, int | None]:
        """See `Progress`."""
        return {"steps": self.done, "steps_total": self.total}

    def describe(self, _: float) -> str:
        """See `Progress`."""
        return f"{self.verb}: step {min(self.done + 1, self.total)} of {self.total}"


class ProgressLine:
    """Show progress that is reported often, at a bounded rate. As a context manager, clear the line at the end.

    Args:
        output: the stream to write to.
        timer: returns seconds.
        json: write objects of JSON.
        columns: returns the width of a terminal; None: the terminal is asked.
    """

    def __init__(
        self,
        output: TextIO,
        timer: Callable[[], float] = time.monotonic,
        *,
        json: bool = False,
        columns: Callable[[], int] | None = None,
    ) -> None:
        self._output = output
        self._columns = columns or self._terminal_columns
        self._timer = timer
        self.json = json
        self._draws = output.isatty() and not json
        self._pause = DRAW_SECONDS if self._draws else JSON_SECONDS if json else LINE_SECONDS
        self._progress: Progress | None = None
        self._began = self._shown = timer()
        self._done_before = self._share_before = 0

    @classmethod
    def of_user(cls, *, silent: bool = False, json: bool = False) -> "ProgressLine":
        """Return the one on stderr; a silent one writes nothing there."""
        return cls(io.StringIO() if silent else sys.stderr, json=json)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, progress: Progress, *, at_once: bool = False) -> None:
        """Show the progress if the pause since the last display is over, or `at_once`."""
        now = self._timer()
        if progress is not self._progress:
            self._progress, self._began, self._done_before = progress, now, progress.done
            self._share_before = (progress.of_total or (0, 0))[0]
        if now < self._shown + self._pause and not at_once:
            return
        self._shown = now
        seconds = max(now - self._began, 1e-3)
        rate = (progress.done - self._done_before) / seconds
        left = self._seconds_left(progress, seconds)
        if self.json:
            self._write_json(progress, rate, seconds, left)
            return
        text = f"{progress.describe(rate)}{'' if left is None else f', {duration_text(left)} left'}"
        drawn = f"{_CLEAR}{fitted(progress, text, self._columns())}" if self._draws else f"lazulite: {text}\n"
        self._output.write(drawn)
        self._output.flush()

    def _terminal_columns(self) -> int:
        """Return the width that the terminal has now."""
        with suppress(OSError):
            return os.get_terminal_size(self._output.fileno()).columns or _COLUMNS
        return _COLUMNS

    def _seconds_left(self, progress: Progress, seconds: float) -> float | None:
        """Return the time that the rest takes at the rate until now; None while that is unknown."""
        if progress.of_total is None or seconds < _ESTIMATE_SECONDS:
            return None
        done, total = progress.of_total
        grown = done - self._share_before
        return seconds * max(total - done, 0) / grown if grown > 0 else None

    def _write_json(self, progress: Progress, rate: float, seconds: float, left: float | None) -> None:
        numbers = {
            "per_second": round(rate, 1),
            "seconds": round(seconds, 1),
            "seconds_left": None if left is None else round(left, 1),
        }
        self.write_event("progress", {"verb": progress.verb, **progress.counts, **numbers})

    def write_event(self, event: str, facts: Mapping[str, object]) -> None:
        """Write an object of JSON for machines, in a line."""
        self._output.write(f"{json.dumps({'event': event, **facts}, ensure_ascii=False)}\n")
        self._output.flush()

    def write_note(self, text: str) -> None:
        """Write a line that stays, such as a warning."""
        self.clear()
        if self.json:
            self.write_event("note", {"text": text})
            return
        self._output.write(f"lazulite: {text}\n")
        self._output.flush()

    def clear(self) -> None:
        """Clear the line, so that the caller can print another one."""
        if self._draws:
            self._output.write(_CLEAR)
            self._output.flush()


def fitted(progress: Progress, text: str, columns: int) -> str:
    """Return a bar and a text that fit a row: with less room the bar gets shorter, then goes, and the text is cut.

    Two columns stay free for the `^C` of a terminal, which must not begin the next row.
    """
    room = max(columns - 2, 1)
    cells = min(BAR_CELLS, room - len(text) - len("[] "))
    if cells >= _BAR_CELLS_MIN:
        return f"{bar(progress, cells)}{text}"
    return text if len(text) <= room else f"{text[: room - 1]}…"


def bar(progress: Progress, width: int = BAR_CELLS) -> str:
    """Return a bar of so many cells with a blank behind it; "" while it is unknown how much there is to do."""
    if progress.of_total is None:
        return ""
    done, total = progress.of_total
    cells = min(width, width * done // max(total, 1))
    return f"[{'#' * cells}{'-' * (width - cells)}] "


def size_text(size_bytes: float) -> str:
    """Return a number of bytes for people."""
    return f"{size_bytes / _MEBIBYTE:,.1f} MiB"


def duration_text(seconds: float) -> str:
    """Return a time for people, such as `0:07`, `12:05` or `3:00:00`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
