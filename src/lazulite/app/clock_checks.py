"""Checks of the clock when a service starts.

Detected: a clock that is far from the timestamps of the store, or from the database's clock; and a jump since the last
start, if the machine has not booted meanwhile. `lazulite.clock` at a location has the boot's id and its time, by the
clock of the last start. Not detected: after a boot, a clock that shows years more may be right, as after years without
power.
"""

import contextlib
from pathlib import Path

from lazulite.app.stderr import report
from lazulite.auth.accounts.file_store import replace_durably
from lazulite.engine.contract import Clock
from lazulite.protocol.clock import UNIX_EPOCH_TICKS, system_clock, ticks_since_boot
from lazulite.protocol.clock_guard import FLAG, JUMP_TICKS_MAX, ClockGuard, days, spelled
from lazulite.settings.config import ConfigError, Settings

NAME = "lazulite.clock"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


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
