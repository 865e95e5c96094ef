import time
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.clock import (
    LAST_TICK,
    TICKS_PER_SECOND,
    UNIX_EPOCH_TICKS,
    format_http_date,
    steady,
    system_clock,
    ticks_since_boot,
    unix_seconds,
    until_9999,
)


def test_ticks_count_from_1601() -> None:
    assert unix_seconds(UNIX_EPOCH_TICKS) == 0
    assert unix_seconds(UNIX_EPOCH_TICKS + 15_000_000) == 1.5
    before = time.time()
    assert before - 1 <= unix_seconds(system_clock()) <= time.time() + 1


@pytest.mark.parametrize("beyond", [0, 1, 10**19])
def test_no_time_is_shown_that_cannot_be_spelled(beyond: int) -> None:
    shown = until_9999(lambda: LAST_TICK + beyond)()
    assert formatdate(unix_seconds(shown), usegmt=True) == "Fri, 31 Dec 9999 23:59:59 GMT"
    assert until_9999(lambda: 5)() == 5


def test_setting_the_clock_does_not_change_the_time_since_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)  # It counts suspension, too.
    with monkeypatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: 0)
        patched.setattr(time, "time", lambda: 0.0)
        shown = ticks_since_boot() / TICKS_PER_SECOND
    assert before - 1e-6 <= shown <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_setting_the_clock_does_not_change_a_steady_one(monkeypatch: pytest.MonkeyPatch) -> None:
    booted = 0
    clock = steady(system_clock, lambda: booted)
    began = clock()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    booted += 50
    assert clock() == began + 50
    assert steady(lambda: 7)() == 7


@given(st.datetimes(datetime(1601, 1, 1), timezones=st.just(UTC)))
def test_a_date_is_as_the_library_writes_it(moment: datetime) -> None:
    since = moment - datetime(1601, 1, 1, tzinfo=UTC)
    ticks = (since.days * 86_400 + since.seconds) * TICKS_PER_SECOND + since.microseconds * 10
    assert format_http_date(ticks) == format_datetime(moment, usegmt=True)


def test_the_last_date() -> None:
    assert format_http_date(LAST_TICK) == format_http_date(LAST_TICK + 1) == "Fri, 31 Dec 9999 23:59:59 GMT"
