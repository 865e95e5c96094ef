"""Effects on the driver itself: time, randomness, ids, waiting, and doing several things at once."""

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.failpoints import Failpoints, NoFailpoints

T = TypeVar("T")


@dataclass(frozen=True)
class Now(Effect[float]):
    """The seconds of a clock that never goes back; only differences mean something."""


@dataclass(frozen=True)
class UtcNow(Effect[datetime]):
    """The time in UTC: the service's, if an answer had it and the clock was not replaced; else the host's."""

    service: datetime | None = None
    """The `Date` of an answer."""


@dataclass(frozen=True)
class Draw(Effect[float]):
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
    """Return the time in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """Return 16 random hexadecimal digits."""
    return secrets.token_hex(8)


@dataclass
class Ambient:
    """What a driver takes from outside: a clock in seconds, random numbers, ids, and what fails."""

    clock: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.random
    new_id: Callable[[], str] = new_id
    failpoints: Failpoints = field(default_factory=NoFailpoints)
    utc_now: Callable[[], datetime] = utc_now

    def answer(self, effect: Effect[object]) -> object:
        """Return the result of an effect that does no I/O."""
        if isinstance(effect, Now):
            return self.clock()
        if isinstance(effect, UtcNow):
            return effect.service if effect.service and self.utc_now is utc_now else self.utc_now()
        if isinstance(effect, Draw):
            return self.draw()
        if isinstance(effect, NewId):
            return self.new_id()
        raise TypeError(f"no driver performs {type(effect).__name__}")
