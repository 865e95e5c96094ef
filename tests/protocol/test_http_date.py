from datetime import UTC, datetime
from email.utils import format_datetime

from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.clock import LAST_TICK, TICKS_PER_SECOND
from lazulite.protocol.http_date import format_http_date


@given(st.datetimes(datetime(1601, 1, 1), timezones=st.just(UTC)))
def test_a_date_is_as_the_library_writes_it(moment: datetime) -> None:
    since = moment - datetime(1601, 1, 1, tzinfo=UTC)
    ticks = (since.days * 86_400 + since.seconds) * TICKS_PER_SECOND + since.microseconds * 10
    assert format_http_date(ticks) == format_datetime(moment, usegmt=True)


def test_the_last_date() -> None:
    assert format_http_date(LAST_TICK) == format_http_date(LAST_TICK + 1) == "Fri, 31 Dec 9999 23:59:59 GMT"
