"""Records as lines of append blobs, and the names of these blobs: `web/2014/07/31/1800/000001.log`.

A line is JSON: `{"time":"2014-07-31T18:00:00.25Z","record":…}`. A name sorts by the period of its records, which all
are of that period. The metadata `first` and `last` are the times of a blob's first and last record. `last` is absent
until the blob is closed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, NamedTuple

import msgspec

from lazulite_patterns.effects.blobs import BlobFacts
from lazulite_patterns.shapes.errors import Inconsistent

FIRST, LAST = "first", "last"
"""The names of metadata."""
LEAST = datetime.min.replace(tzinfo=UTC)
_NUMBER = re.compile(r"([0-9]{6,9})\.log")


@dataclass(frozen=True)
class LogRecord:
    """A record of a log.

    Attributes:
        time: when it was appended, with a zone.
        record: what JSON has.
    """

    time: Annotated[datetime, msgspec.Meta(tz=True)]
    record: object


_decoder = msgspec.json.Decoder(LogRecord)


def line(record: LogRecord) -> bytes:
    """Return the line of a record.

    Raises:
        TypeError: the record is not what JSON has.
    """
    return msgspec.json.encode(record) + b"\n"


def record_of(blob: str, text: bytes) -> LogRecord:
    """Return the record of a line.

    Raises:
        Inconsistent: the line is not a log: another program wrote it.
    """
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError as error:
        raise Inconsistent(f"the blob {blob} has a line that is no record: {error}") from error


class Span(NamedTuple):
    """A time to another one, both included."""

    first: datetime
    last: datetime

    def meets(self, facts: BlobFacts) -> bool:
        """Tell whether a blob may have records of this time, by its metadata."""
        return known(facts, FIRST, LEAST) <= self.last and self.first <= known(facts, LAST, self.first)


def span(first: datetime, last: datetime) -> Span:
    """Return the time between two ones, in UTC.

    Raises:
        ValueError: a time has no zone.
    """
    if first.tzinfo is None or last.tzinfo is None:
        raise ValueError("a time has no time zone")
    return Span(first.astimezone(UTC), last.astimezone(UTC))


def known(facts: BlobFacts, name: str, otherwise: datetime) -> datetime:
    """Return a time of a blob's metadata; the other one if it is absent or cannot be read."""
    try:
        return datetime.fromisoformat(facts.metadata[name]).astimezone(UTC)
    except (KeyError, ValueError, OverflowError):
        return otherwise


@dataclass(frozen=True)
class LogNames:
    """The names of a log's blobs.

    Attributes:
        log: the name of the log.
        every: the period for which a blob has records.
    """

    log: str
    every: Literal["hour", "day"]

    def __post_init__(self) -> None:
        """Check the name and the period.

        Raises:
            ValueError: there is no such period, or no log can have this name.
        """
        if self.every not in {"hour", "day"}:
            raise ValueError(f"{self.every!r}: a period is an hour or a day")
        if not re.fullmatch(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*", self.log) or len(self.log) > 900:
            raise ValueError(f"{self.log!r}: letters, digits, - and _ in parts with / between, 900 characters at most")

    def day(self, time: datetime) -> str:
        """Return how the names for a day begin."""
        return f"{self.log}/{time.year:04d}/{time.month:02d}/{time.day:02d}/"

    def days(self, wanted: Span) -> Iterator[str]:
        """Yield how the names for each day begin."""
        day, end = wanted.first.date(), wanted.last.date()
        while day <= end:
            yield self.day(datetime(day.year, day.month, day.day, tzinfo=UTC))
            if day == end:  # The day after the last one of the calendar is none.
                return
            day += timedelta(days=1)

    def period(self, time: datetime) -> str:
        """Return how the names for the period of a time begin."""
        return f"{self.day(time)}{time.hour:02d}00/" if self.every == "hour" else self.day(time)

    @staticmethod
    def numbered(period: str, number: int) -> str:
        """Return the name of a blob."""
        return f"{period}{number:06d}.log"

    @staticmethod
    def number(period: str, name: str) -> int:
        """Return the number of a blob of a period; 0 if the name is of something else."""
        found = _NUMBER.fullmatch(name.removeprefix(period))
        return 0 if found is None else int(found[1])
