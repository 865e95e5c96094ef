"""Times as texts that sort: .NET ticks, as the design guide writes them, and dates; newest first if reversed."""

from datetime import UTC, date, datetime, timedelta

from lazulite_patterns.keys.characters import KeyValueError
from lazulite_patterns.keys.codecs import FunctionCodec, Integers

TICKS_MAX = 3_155_378_975_999_999_999
"""The ticks of 9999-12-31T23:59:59.9999999, .NET's `DateTime.MaxValue`."""
_EPOCH = datetime(1, 1, 1, tzinfo=UTC)
_DIGITS = 19


class Ticks(int):
    """A time in units of 100 ns since 0001-01-01T00:00:00Z: with the seventh digit, which Python's times lack."""

    @classmethod
    def of(cls, time: datetime) -> "Ticks":
        """Return the ticks of a time.

        Raises:
            ValueError: the time has no zone.
        """
        if time.tzinfo is None or time.utcoffset() is None:
            raise ValueError(f"{time!r} has no time zone")
        return cls((time - _EPOCH) // timedelta(microseconds=1) * 10)

    @property
    def datetime(self) -> datetime:
        """The time in UTC, less what is below a microsecond."""
        return _EPOCH + timedelta(microseconds=self // 10)

    @property
    def text(self) -> str:
        """The time as the service writes it, with seven digits after the second."""
        return f"{self.datetime.strftime('%Y-%m-%dT%H:%M:%S.%f')}{self % 10}Z"


class TickTime(datetime):
    """A time that was read from a key, with the seventh digit that Python's times lack."""

    ticks: Ticks

    @classmethod
    def of(cls, ticks: Ticks) -> "TickTime":
        """Return the time of some ticks."""
        time = ticks.datetime
        found = cls.combine(time.date(), time.time(), UTC)
        found.ticks = ticks
        return found


def tick_codec(*, reverse: bool) -> FunctionCodec[datetime]:
    """Return the codec of a time as 19 digits of ticks; reversed they count down to `DateTime.MaxValue`."""

    def write(time: datetime) -> str:
        if time.tzinfo is None:
            raise KeyValueError(f"{time!r} has no time zone")
        read = time if isinstance(time, TickTime) else None
        ticks = getattr(read, "ticks", None) or Ticks.of(time)  # What is computed from such a time has none.
        return f"{TICKS_MAX - ticks if reverse else ticks:0{_DIGITS}d}"

    def parse(text: str) -> datetime:
        number = int(text)
        ticks = Ticks(TICKS_MAX - number if reverse else number)
        return TickTime.of(ticks) if ticks % 10 else ticks.datetime

    return FunctionCodec(datetime, write, parse, reverse, timed=True)


def exact_tick_codec(*, reverse: bool) -> FunctionCodec[Ticks]:
    """Return the codec of all seven digits of a time."""
    digits = Integers(_DIGITS)

    def write(ticks: Ticks) -> str:
        if not 0 <= ticks <= TICKS_MAX:
            raise KeyValueError(f"{int(ticks)} ticks are not a time")
        return digits.encode(TICKS_MAX - ticks if reverse else ticks)

    def parse(text: str) -> Ticks:
        number = digits.decode(text)
        return Ticks(TICKS_MAX - number if reverse else number)

    return FunctionCodec(Ticks, write, parse, reverse, timed=True)


def date_codec(*, reverse: bool) -> FunctionCodec[date]:
    """Return the codec of a date: `2014-07-31`, or reversed 9999 less the year, 12 less the month, 31 less the day."""

    def write(day: date) -> str:
        if isinstance(day, datetime):
            raise KeyValueError(f"{day!r} is a time, not a date")
        parts = (9999 - day.year, 12 - day.month, 31 - day.day) if reverse else (day.year, day.month, day.day)
        return "{:04d}-{:02d}-{:02d}".format(*parts)

    def parse(text: str) -> date:
        year, month, day = map(int, text.split("-"))
        return date(9999 - year, 12 - month, 31 - day) if reverse else date(year, month, day)

    return FunctionCodec(date, write, parse, reverse, timed=True)
