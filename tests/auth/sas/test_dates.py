"""The ISO 8601 forms of signatures and policies."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.sas import format_sas_date, parse_sas_date
from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS


def ticks(moment: datetime) -> int:
    since = moment - datetime(1601, 1, 1, tzinfo=UTC)
    return (since // timedelta(microseconds=1)) * 10


NOON = ticks(datetime(2030, 1, 2, 12, 34, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01", UNIX_EPOCH_TICKS),
        ("1601-01-01T00:00:00Z", 0),
        ("2030-01-02", ticks(datetime(2030, 1, 2, tzinfo=UTC))),
        ("2030-01-02T12:34Z", NOON),
        ("2030-01-02T12:34:56Z", NOON + 56 * TICKS_PER_SECOND),
        ("2030-01-02T12:34:56.1234567Z", NOON + 561_234_567),
        ("2030-01-02T12:34:56.1Z", NOON + 561_000_000),
        ("2030-01-02T14:34+02:00", NOON),
        ("2030-01-02T06:04:00.0000000-06:30", NOON),
        ("2030-01-03T00:34:00+12:00", NOON),
        ("9999-12-31T23:59:59.9999999Z", ticks(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)) + 9_999_999),
    ],
)
def test_every_form(text: str, expected: int) -> None:
    assert parse_sas_date(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "tomorrow", "2030", "2030-1-2", "2030-13-01", "2030-02-30", "0000-01-01", "2030-01-02Z"),
        *("2030-01-02T12:34", "2030-01-02T12Z", "2030-01-02 12:34Z", "2030-01-02T24:00Z", "2030-01-02T12:60Z"),
        *("2030-01-02T12:34:60Z", "2030-01-02T12:34:56.12345678Z", "2030-01-02T12:34:56.Z", "2030-01-02T12:34z"),
        *("2030-01-02T12:34+0200", "2030-01-02T12:34Z ", "٢٠٣٠-01-02", "2030-01-02T12:34Z\n"),
    ],
)
def test_other_forms_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_sas_date(text)


@given(st.datetimes(datetime(1601, 1, 1), datetime(9999, 12, 31)))
def test_what_is_written_reads_back(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    text = format_sas_date(ticks(moment) + 9_999_999)
    assert text == moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
    assert parse_sas_date(text) == ticks(moment)
