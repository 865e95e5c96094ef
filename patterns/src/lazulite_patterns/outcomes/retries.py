"""When a request is sent again: with full jitter, not before the service wants it, and not after the deadline."""

from dataclasses import dataclass
from typing import TypeVar

from lazulite_patterns.effects.calls import WithTimeout
from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.runtime import Now, RandomNumber, Sleep
from lazulite_patterns.outcomes.errors import OutcomeUnknown, Unavailable

R = TypeVar("R")
_REQUEST_SECONDS_MIN = 0.1
"""The least that one request gets, so that a deadline which has just passed does not make it fail unsent."""
_DOUBLINGS_MAX = 60
"""Doublings of the first wait, at most: more of them are longer than any wait, and no number that a float has."""


@dataclass(frozen=True)
class Policy:
    """How long and how often requests are repeated.

    Attributes:
        deadline_seconds: after the first request; no request is sent later, and none is waited for longer. An answer
            of which parts come again and again may take longer.
        first_wait_seconds: the most that is waited before the second request. It doubles with each one.
        wait_max_seconds: the most that is waited before any request, if the service does not ask for more.
        marks: ids in the property `_Op`; 0 writes none, and more results stay unknown.
    """

    deadline_seconds: float = 60
    first_wait_seconds: float = 0.1
    wait_max_seconds: float = 10
    marks: int = 4

    @property
    def reserve_seconds(self) -> float:
        """The end of the deadline that is kept for the read which tells what became of a write."""
        return min(5.0, self.deadline_seconds / 4)


class Attempts:
    """The requests of one operation: their deadline, and the waits between them."""

    def __init__(self, policy: Policy, started_seconds: float) -> None:
        """Begin now."""
        self._policy = policy
        self._deadline = started_seconds + policy.deadline_seconds
        self._count = 0

    def perform(self, effect: Effect[R], *, reserved: bool = False) -> Protocol[R]:
        """Perform one request in the time that is left.

        Args:
            effect: the request.
            reserved: whether the time of the one read that tells what became of a write is not to be used.
        """
        left = self._deadline - (yield from perform(Now())) - (self._policy.reserve_seconds if reserved else 0)
        return (yield from perform(WithTimeout(effect, max(left, _REQUEST_SECONDS_MIN))))

    @property
    def repeated(self) -> bool:
        """Whether a request was not answered, so that it may have been done."""
        return self._count > 0

    def expired(self) -> Protocol[bool]:
        """Tell whether the deadline has passed."""
        return (yield from perform(Now())) > self._deadline

    def wait(self, unknown: ResultUnknown, *, reserved: bool = False) -> Protocol[bool]:
        """Wait before the next request. False if none may be sent before the deadline, or before its reserved end."""
        most = min(
            self._policy.wait_max_seconds, self._policy.first_wait_seconds * 2 ** min(self._count, _DOUBLINGS_MAX)
        )
        self._count += 1
        seconds = max((yield from perform(RandomNumber())) * most, unknown.retry_after_seconds or 0.0)
        if (yield from perform(Now())) + seconds > self._deadline - (self._policy.reserve_seconds if reserved else 0):
            return False
        yield from perform(Sleep(seconds))
        return True


def begin(policy: Policy) -> Protocol[Attempts]:
    """Return the attempts of an operation that begins now."""
    return Attempts(policy, (yield from perform(Now())))


def read(effect: Effect[R], attempts: Attempts) -> Protocol[R]:
    """Perform an effect that changes nothing, as often as it takes.

    Raises:
        Unavailable: there was no answer before the deadline.
    """
    return at_least_once(effect, attempts, Unavailable)


def at_least_once(
    effect: Effect[R], attempts: Attempts, error: type[OutcomeUnknown | Unavailable] = OutcomeUnknown
) -> Protocol[R]:
    """Perform an effect that may be done twice, until there is an answer.

    Args:
        effect: the request.
        attempts: its deadline.
        error: what is raised if there was no answer before it.
    """
    while True:
        try:
            return (yield from attempts.perform(effect))
        except ResultUnknown as unknown:
            if not (yield from attempts.wait(unknown)):
                raise error(str(unknown)) from unknown
