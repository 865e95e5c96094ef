"""The clock of timestamps, which is rejected when it has jumped far ahead.

A timestamp stays: each later one is above it. So a clock that is set to a far year for a moment would leave Timestamps
of that year for ever. The time since the machine booted distinguishes a jump from elapsed time: it goes on while the
process is busy or the machine is suspended, and setting the clock does not change it. Steps back do no harm here, as
timestamps go on from the last one.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from lazulite.engine.contract import Clock, EngineUnavailableError
from lazulite.protocol.clock import LAST_TICK, TICKS_PER_DAY, UNIX_EPOCH_TICKS

FLAG = "--accept-clock-jump"
JUMP_TICKS_MAX = TICKS_PER_DAY
_TIMESTAMPS_END = LAST_TICK - TICKS_PER_DAY
"""Timestamps may run ahead of the clock a little, and each must be spelled."""


class ClockJumpError(EngineUnavailableError):
    """The clock cannot be used for timestamps now."""


class ClockGuard:
    """A clock for timestamps.

    Args:
        clock: the machine's time.
        since_boot: how long the machine has been running, in ticks.
        report: gets a line for people when the clock is rejected, and when it is used again.
        accept: whether jumps are meant.
    """

    def __init__(
        self, clock: Clock, since_boot: Callable[[], int], report: Callable[[str], None], *, accept: bool = False
    ) -> None:
        self._clock = clock
        self._since_boot = since_boot
        self._report = report
        self._accept = accept
        self._rejecting = False
        self.boot_tick = clock() - since_boot()
        """When the machine booted, by the clock as it was at first."""

    def __call__(self) -> int:
        """Return the time.

        Raises:
            ClockJumpError: the clock is more than a day ahead of the time that went by, or near the end of year 9999.
        """
        now = self._clock()
        jump = 0 if self._accept else now - self._since_boot() - self.boot_tick
        if jump <= JUMP_TICKS_MAX and now < _TIMESTAMPS_END:
            if self._rejecting:
                self._rejecting = False
                self._report("the clock is right again, and writes are taken")
            return now
        if not self._rejecting:
            self._rejecting = True
            self._report(_complaint(now, jump))
        raise ClockJumpError(f"the clock says {spelled(now)}")


def _complaint(now: int, jump: int) -> str:
    if now >= _TIMESTAMPS_END:
        return f"the clock says {spelled(now)}, which no Timestamp can be: writes are rejected until it is set right"
    return (
        f"the clock has jumped {days(jump)} days ahead, to {spelled(now)}: writes are rejected until it is set right; "
        f"if it is right now, start again with {FLAG}"
    )


def days(ticks: int) -> str:
    """Spell a while in days."""
    return f"{ticks / TICKS_PER_DAY:,.1f}"


def spelled(ticks: int) -> str:
    """Spell a time for people, to the second."""
    if ticks > LAST_TICK:
        return "a time after the year 9999"
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=(ticks - UNIX_EPOCH_TICKS) // 10)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
