"""Every fault at every effect: what a test of a protocol goes through."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.failpoints import Crash


class Fault(Enum):
    """What happens at one effect."""

    CRASH_BEFORE = "the process ends before the effect"
    CRASH_AFTER = "the process ends after the effect, before its answer"
    NEVER_SENT = "the request does not reach the service"
    ANSWER_LOST = "the effect happens, its answer is lost"
    ERROR_AFTER = "the effect happens, the answer is 500"
    BUSY = "503 with Retry-After, and the effect does not happen"
    RIVAL = "another process writes before the effect"


@dataclass
class FaultAt:
    """Failpoints: one fault, at the effect of one number. Counts effects; `hit` tells if there were so many."""

    number: int
    fault: Fault
    rival: Callable[[], None] | None = None
    count: int = 0
    hit: bool = False
    effect: Effect[object] | None = field(default=None, repr=False)
    """The effect of that number: others may be performed at the same time."""

    def before(self, effect: Effect[object]) -> None:
        """Fail before the effect of that number."""
        self.count += 1
        if self.count - 1 != self.number:
            return
        self.hit, self.effect = True, effect
        if self.fault is Fault.CRASH_BEFORE:
            raise Crash
        if self.fault is Fault.NEVER_SENT:
            raise ResultUnknown("not sent")
        if self.fault is Fault.BUSY:
            raise ResultUnknown("503", retry_after_seconds=3)
        if self.fault is Fault.RIVAL and self.rival is not None:
            self.rival()

    def after(self, effect: Effect[object]) -> None:
        """Fail after the effect of that number."""
        if effect is not self.effect:
            return
        self.effect = None  # The same effect may be performed again.
        if self.fault is Fault.CRASH_AFTER:
            raise Crash
        if self.fault in {Fault.ANSWER_LOST, Fault.ERROR_AFTER}:
            raise ResultUnknown(self.fault.value)


def every_fault(attempt: Callable[[FaultAt], None], rival: Callable[[], None] | None = None) -> Iterator[FaultAt]:
    """Run an attempt once for each effect and each fault, and yield after each, for the test to look at what is left.

    Args:
        attempt: sets up everything again, runs the protocol with these failpoints, and catches `Crash`.
        rival: writes as another process does. None leaves that fault out.
    """
    for fault in Fault:
        if fault is Fault.RIVAL and rival is None:
            continue
        number = 0
        while True:
            at = FaultAt(number, fault, rival)
            attempt(at)
            if not at.hit:
                break
            yield at
            number += 1
