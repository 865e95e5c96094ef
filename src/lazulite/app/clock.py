"""The clocks of an application: of timestamps, checked when a service starts and at each timestamp, and of a database.

A timestamp stays: each later one is above it. So a clock that is set to a far year for a moment would leave Timestamps
of that year forever. The time since the machine booted distinguishes a jump from elapsed time: it goes on while the
process is busy or the machine is suspended, and setting the clock does not change it. Steps back do no harm here, as
timestamps go on from the last one.

Detected at a start: a clock that is far from the timestamps of the store, or from the database's clock; and a jump
since the last start, if the machine has not booted meanwhile. `lazulite.clock` at a location has the boot's id and its
time, by the clock of the last start. Not detected: after a boot, a clock that shows years more may be right, as after
years without power.

Invariant of a database's time: between two answers it goes by as on this machine. An answer tells the database's time
at some moment between question and answer. The clock stays as it is while that is possible, and else moves to the
nearest time that is. It may step back; what needs a time that does not (`NonDecreasingClock`) stands still meanwhile.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lazulite.app.stderr import report
from lazulite.auth.accounts.file_store import replace_durably
from lazulite.engine.contract import Clock, EngineError, EngineUnavailableError
from lazulite.protocol.clock import (
    LAST_TICK,
    TICKS_PER_DAY,
    TICKS_PER_SECOND,
    UNIX_EPOCH_TICKS,
    system_clock,
    ticks_since_boot,
)
from lazulite.settings.config import ConfigError, Settings

FLAG = "--accept-clock-jump"
JUMP_TICKS_MAX = TICKS_PER_DAY
_TIMESTAMPS_END = LAST_TICK - TICKS_PER_DAY
"""Timestamps may run ahead of the clock a little, and each must be spelled."""

NAME = "lazulite.clock"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

ASK_SECONDS = 10.0


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
            self._report(_jump_message(now, jump))
        raise ClockJumpError(f"the clock says {spelled(now)}")


def _jump_message(now: int, jump: int) -> str:
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


def timestamp_clock(settings: Settings, clock: Clock = system_clock) -> ClockGuard:
    """Return the clock of a service's timestamps, which rejects jumps of `clock`."""
    return ClockGuard(clock, ticks_since_boot, report, accept=settings.accept_clock_jump)


def check_since_boot(location: Path, boot_tick: int) -> None:
    """Reject a clock that has jumped ahead since the last start on a location.

    Args:
        location: the directory, which may be missing.
        boot_tick: when the machine booted, by the clock as it is.

    Raises:
        ConfigError: it has.
    """
    recorded = _recorded(location / NAME)
    if recorded is not None and boot_tick - recorded > JUMP_TICKS_MAX:
        raise ConfigError(
            f"the clock has jumped {days(boot_tick - recorded)} days ahead since the last start, to "
            f"{spelled(system_clock())}: correct it or, if it is right, start once with {FLAG}"
        )


def note_boot(location: Path, boot_tick: int) -> None:
    """Record when the machine booted, for the next start; without a disk that takes it, that start knows less."""
    boot = _boot_id()
    if boot:
        with contextlib.suppress(OSError):
            replace_durably(location / NAME, f"{boot} {boot_tick}\n".encode())


def check_newest_timestamp(name: str, timestamp: int) -> None:
    """Reject a store whose newest timestamp is far ahead of the clock.

    Args:
        name: the store's, for people.
        timestamp: its newest, 0 if there is none.

    Raises:
        ConfigError: it is.
    """
    now = system_clock()
    if timestamp - now > JUMP_TICKS_MAX:
        raise ConfigError(
            f"the newest Timestamp in {name} is {spelled(timestamp)}, {days(timestamp - now)} days ahead of the clock: "
            f"correct the clock or, if it is right, start with {FLAG}; new Timestamps then continue from the newest one"
        )


def check_database_time(name: str, unix_seconds: float) -> None:
    """Reject a clock that is far ahead of a database's.

    Args:
        name: the database's, for people.
        unix_seconds: its time.

    Raises:
        ConfigError: it is.
    """
    now = system_clock()
    ahead = now - UNIX_EPOCH_TICKS - int(unix_seconds * 10_000_000)
    if ahead > JUMP_TICKS_MAX:
        raise ConfigError(
            f"the clock says {spelled(now)}, {days(ahead)} days ahead of the clock of {name}: correct the clocks or, "
            f"if they are meant to differ, start with {FLAG}"
        )


def _recorded(path: Path) -> int | None:
    """Return the boot's time that was recorded since the machine booted; None if there is none."""
    try:
        boot, tick = path.read_text(encoding="ascii").split()
        return int(tick) if boot == _boot_id() else None
    except (OSError, ValueError):
        return None


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


class DatabaseClock:
    """A `Clock`. `ask` comes first.

    Args:
        unix_seconds: asks for the database's time.
        since_boot: how long this machine has been running, in ticks.
    """

    def __init__(
        self, unix_seconds: Callable[[], Awaitable[float]], since_boot: Callable[[], int] = ticks_since_boot
    ) -> None:
        self._unix_seconds = unix_seconds
        self._since_boot = since_boot
        self._boot_tick: int | None = None
        """When this machine booted, by the database's time."""

    def __call__(self) -> int:
        """See `Clock`."""
        assert self._boot_tick is not None
        return self._boot_tick + self._since_boot()

    async def ask(self) -> None:
        """Ask for the time.

        Raises:
            EngineError: the database did not answer.
        """
        asked = self._since_boot()
        reported = int(await self._unix_seconds() * TICKS_PER_SECOND) + UNIX_EPOCH_TICKS
        earliest, latest = reported - self._since_boot(), reported - asked
        known = (earliest + latest) // 2 if self._boot_tick is None else self._boot_tick
        self._boot_tick = min(max(known, earliest), latest)

    async def run(self) -> None:
        """Ask every `ASK_SECONDS`, forever."""
        while True:
            await asyncio.sleep(ASK_SECONDS)
            with suppress(EngineError):
                await self.ask()
