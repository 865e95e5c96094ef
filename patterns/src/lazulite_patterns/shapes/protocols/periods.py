"""A table for each period: names, creation ahead of time, and the drop of tables that have expired.

A table's name has the period's beginning, and is never used again: a period is not written to after it has expired.
So the drop of a table, which the service completes later, meets no new table of the same name. Creation and drop are
idempotent, and so are repeated after an unknown result.

The service's time says which periods are over. A writer that looked at it just before a period expired may create the
table once more after the drop. The next `expire` lists the tables again, and drops it.
"""

import re
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from lazulite_patterns.effects.calls import Call
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.runtime import ServiceNow
from lazulite_patterns.outcomes import grace
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.shapes.errors import PeriodExpired

Every = Literal["hour", "day", "month", "year"]
NAME_MAX = 63
"""The most characters of a table's name."""


class _Format(NamedTuple):
    letter: str
    format: str
    digits: int


_FORMATS: dict[Every, _Format] = {
    "hour": _Format("H", "%Y%m%d%H", 10),
    "day": _Format("D", "%Y%m%d", 8),
    "month": _Format("M", "%Y%m", 6),
    "year": _Format("Y", "%Y", 4),
}


class Period(NamedTuple):
    """A period: its table, its beginning, and its end, which is the beginning of the next one."""

    name: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Names:
    """The names of tables: `LoginsD20140731` for a day."""

    prefix: str
    every: Every

    def __post_init__(self) -> None:
        """Check the prefix.

        Raises:
            ValueError: the service takes no table of such a name.
        """
        if self.every not in _FORMATS:
            raise ValueError(f"{self.every!r}: a period is one of {', '.join(_FORMATS)}")
        longest = NAME_MAX - 1 - _FORMATS[self.every].digits
        if not re.fullmatch("[A-Za-z][A-Za-z0-9]*", self.prefix) or len(self.prefix) > longest:
            raise ValueError(f"{self.prefix!r}: letters and digits, at most {longest}, and a letter first")

    def at(self, time: datetime) -> Period:
        """Return the period that a time is in.

        Raises:
            ValueError: the time has no zone.
        """
        if time.tzinfo is None:
            raise ValueError(f"{time!r} has no time zone")
        utc = time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        start = utc if self.every == "hour" else utc.replace(hour=0)
        if self.every in {"month", "year"}:
            start = start.replace(day=1)
        if self.every == "year":
            start = start.replace(month=1)
        kind = _FORMATS[self.every]
        return Period(f"{self.prefix}{kind.letter}{_text(start, kind)}", start, self._end(start))

    def following(self, period: Period) -> Period:
        """Return the next period."""
        return self.at(period.end)

    def of(self, name: str) -> Period | None:
        """Return the period of a table; None if the name is none of these."""
        kind = _FORMATS[self.every]
        found = re.fullmatch(f"{self.prefix}{kind.letter}([0-9]{{{kind.digits}}})", name)
        if found is None:
            return None
        try:
            return self.at(datetime.strptime(found[1], kind.format).replace(tzinfo=UTC))
        except (ValueError, OverflowError):
            return None

    @property
    def filter(self) -> str:
        """The condition of OData that all names fulfil, and few others."""
        start = f"{self.prefix}{_FORMATS[self.every].letter}"
        return f"TableName ge '{start}0' and TableName lt '{start}:'"

    def _end(self, start: datetime) -> datetime:
        if self.every == "hour":
            return start + timedelta(hours=1)
        if self.every == "day":
            return start + timedelta(days=1)
        if self.every == "year" or start.month == 12:
            return start.replace(year=start.year + 1, month=1)
        return start.replace(month=start.month + 1)


def _text(start: datetime, kind: _Format) -> str:
    """Return a time with four digits of the year, which `strftime` has not everywhere."""
    return f"{start.year:04d}{start.strftime('%m%d%H')}"[: kind.digits]


class Service(typing.Protocol):
    """What is done to tables, each by one request; the asynchronous ones return what is awaited.

    `options` are those of the SDK that bound the time of a request.
    """

    def listed(self, condition: str, **options: object) -> object:
        """Return the names of tables."""

    def create(self, name: str, **options: object) -> object:
        """Create a table."""

    def drop(self, name: str, **options: object) -> object:
        """Drop a table."""


@dataclass(frozen=True)
class PeriodsProtocol:
    """Makes the protocols of `Periods`."""

    names: Names
    keep: timedelta
    service: Service
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen

    def check(self, time: datetime) -> Protocol[Period]:
        """Return the period of a time.

        Raises:
            PeriodExpired: its table was dropped, or is about to be.
        """
        period = self.names.at(time)
        if period.end + self.keep <= (yield from self._now()):
            raise PeriodExpired(f"{period.name} is kept for {self.keep} after its end")
        return period

    def create(self, time: datetime) -> Protocol[Period]:
        """Create the table of a period, if it is absent."""
        period = yield from self.check(time)
        try:
            yield from self._done(self.service.create, period.name)
        except Rejected as rejected:
            if rejected.code == "TableBeingDeleted":
                raise PeriodExpired(f"{period.name} is being dropped") from rejected
            if rejected.code != "TableAlreadyExists":
                raise
        return period

    def prepare(self, ahead: int) -> Protocol[list[str]]:
        """Create the tables of this period and of the next ones, and return their names."""
        period = self.names.at((yield from self._now()))
        created = []
        for _ in range(ahead + 1):
            created.append((yield from self.create(period.start)).name)
            period = self.names.following(period)
        return created

    def existing(self) -> Protocol[list[Period]]:
        """Return the periods that have a table, oldest first."""
        attempts = yield from begin(self.policy)
        found = yield from read(Call(self.service.listed, (self.names.filter,), requests=True), attempts)
        assert isinstance(found, Iterable), "it returns names"
        periods = [period for each in found if (period := self.names.of(str(each))) is not None]
        return sorted(periods, key=lambda each: each.start)

    def expire(self) -> Protocol[list[str]]:
        """Drop the tables whose time is over, oldest first, and return their names."""
        existing = yield from self.existing()
        now = yield from self._now()
        expired = [each.name for each in existing if each.end + self.keep <= now]
        for name in expired:
            try:
                yield from self._done(self.service.drop, name)
            except Rejected as rejected:
                if rejected.code not in {"TableNotFound", "ResourceNotFound", "TableBeingDeleted"}:
                    raise
        return expired

    def _now(self) -> Protocol[datetime]:
        """Return the service's time, which the list of tables tells if no answer came before."""
        if (now := (yield from perform(ServiceNow()))) is None:
            yield from self.existing()
            now = yield from grace.now()
        return now

    def _done(self, function: Callable[..., object], name: str) -> Protocol[None]:
        yield from read(Call(function, (name,), requests=True), (yield from begin(self.policy)))
