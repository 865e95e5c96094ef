"""Effects on the driver itself: time, randomness, ids, waiting, and doing several things at once."""

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Generic, TypeVar

from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.failpoints import Failpoints, NoFailpoints

T = TypeVar("T")


@dataclass(frozen=True)
class Now(Effect[float]):
    """The seconds of a clock that never goes back; only differences mean something."""


@dataclass(frozen=True)
class UtcNow(Effect[datetime]):
    """The time in UTC by the host's clock, which may be wrong. Nothing compares it with times of the service."""


@dataclass(frozen=True)
class ServiceNow(Effect[datetime | None]):
    """The service's time in UTC; None before its first answer to this driver.

    It is the `Date` of the last answer, and the seconds since then by a clock that never goes back. So it is never
    ahead, and behind by a second and the time of that answer's way at most.
    """


@dataclass(frozen=True)
class RandomNumber(Effect[float]):
    """A random number, 0 <= n < 1."""


@dataclass(frozen=True)
class NewId(Effect[str]):
    """An id that no other operation has: 16 hexadecimal digits."""


@dataclass(frozen=True)
class Sleep(Effect[None]):
    """Wait."""

    seconds: float


@dataclass(frozen=True, eq=False)
class Gather(Effect[list[T]], Generic[T]):
    """Run protocols at the same time. The results are in their order; the first error is raised after all ended."""

    protocols: tuple[Protocol[T], ...]
    workers: int = 8


def utc_now() -> datetime:
    """Return the time in UTC by the host's clock."""
    return datetime.now(UTC)


def date_of(text: str | None) -> datetime | None:
    """Return the time of a header `Date`; None if there is none, or none that can be read."""
    try:
        return None if text is None else parsedate_to_datetime(text)
    except ValueError:
        return None


def new_id() -> str:
    """Return 16 random hexadecimal digits."""
    return secrets.token_hex(8)


@dataclass
class Runtime:
    """What a driver takes from outside: clocks, random numbers, ids, and what fails.

    Attributes:
        clock: seconds that never go back.
        draw: random numbers, 0 <= n < 1.
        new_id: ids.
        failpoints: what fails.
        utc_now: the host's time. One that is not the default is taken for the service's time, too.
    """

    clock: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.random
    new_id: Callable[[], str] = new_id
    failpoints: Failpoints = field(default_factory=NoFailpoints)
    utc_now: Callable[[], datetime] = utc_now
    _heard: tuple[str, float] | None = field(default=None, repr=False)
    """The last `Date` of the service, and when it came by `clock`."""

    def hear(self, date: str | None) -> None:
        """Take the header `Date` of an answer; None if it has none."""
        if date is not None:
            self._heard = date, self.clock()

    def answer(self, effect: Effect[object]) -> object:
        """Return the result of an effect that does no I/O."""
        if isinstance(effect, Now):
            return self.clock()
        if isinstance(effect, UtcNow):
            return self.utc_now()
        if isinstance(effect, ServiceNow):
            return self._service_now() if self.utc_now is utc_now else self.utc_now()
        if isinstance(effect, RandomNumber):
            return self.draw()
        if isinstance(effect, NewId):
            return self.new_id()
        raise TypeError(f"no driver performs {type(effect).__name__}")

    def _service_now(self) -> datetime | None:
        if (heard := self._heard) is None or (date := date_of(heard[0])) is None:
            return None
        return date + timedelta(seconds=self.clock() - heard[1])
