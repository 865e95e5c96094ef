"""A table for each period, on the service."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from uuid import uuid4

import pytest
from azure.data.tables import TableServiceClient
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns import Column, QueryError, columns, entity, partition, row
from lazulite_patterns.aio.shapes import Periods as AsyncPeriods
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.outcomes import Exists
from lazulite_patterns.shapes import PeriodExpired, Periods
from lazulite_patterns.shapes.protocols.periods import Every, Names
from lazulite_patterns.table.check import UNREADABLE
from lazulite_patterns_simulation import Crash, FaultAt, every_fault

from .support import QUICK, counting

NOON = datetime(2014, 7, 31, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@entity
class Login:
    user: Column[str] = partition()
    number: Column[int] = row(width=4)


@pytest.fixture
def service(connection_string: str) -> Iterator[TableServiceClient]:
    with TableServiceClient.from_connection_string(connection_string, retry_total=0) as client:
        yield client


@pytest.fixture
def prefix(service: TableServiceClient) -> Iterator[str]:
    """Yield a prefix of tables, which are dropped after the test."""
    found = f"P{uuid4().hex[:16]}"
    yield found
    for each in list(service.list_tables()):
        if each.name.lower().startswith(found.lower()):
            service.delete_table(each.name)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def logins_of(service: TableServiceClient, prefix: str, clock: Clock, every: Every = "day") -> Periods[Login]:
    runtime = Runtime(utc_now=clock, failpoints=counting())
    return Periods(service, prefix, Login, every=every, keep=2 * DAY, runtime=runtime, policy=QUICK)


def tables(service: TableServiceClient, prefix: str) -> set[str]:
    return {each.name.removeprefix(prefix) for each in service.list_tables() if each.name.startswith(prefix)}


@pytest.mark.parametrize(
    ("every", "name", "end"),
    [
        ("hour", "LH2014123123", datetime(2015, 1, 1, tzinfo=UTC)),
        ("day", "LD20141231", datetime(2015, 1, 1, tzinfo=UTC)),
        ("month", "LM201412", datetime(2015, 1, 1, tzinfo=UTC)),
        ("year", "LY2014", datetime(2015, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_period_is_of_utc_and_has_a_name(every: Every, name: str, end: datetime) -> None:
    east = timezone(timedelta(hours=2))
    period = Names("L", every).at(datetime(2015, 1, 1, 1, 59, 59, tzinfo=east))
    assert period == (name, period.start, end)
    assert Names("L", every).at(period.start) == period
    with pytest.raises(ValueError, match="zone"):
        Names("L", every).at(datetime(2014, 1, 1))


TIMES = st.datetimes(datetime(1, 1, 2), datetime(9998, 1, 1), timezones=st.just(UTC))


@given(times=st.lists(TIMES, min_size=1, max_size=5), every=st.sampled_from(["hour", "day", "month", "year"]))
def test_names_sort_as_periods_and_lead_back(times: list[datetime], every: Every) -> None:
    names = Names("Logins", every)
    periods = [names.at(each) for each in times]
    assert all(names.of(each.name) == each for each in periods)
    assert all(each.start <= time < each.end for each, time in zip(periods, times, strict=True))
    assert all(names.following(each).start == each.end for each in periods)
    assert sorted(each.name for each in periods) == [each.name for each in sorted(periods, key=lambda it: it.start)]


def test_entities_are_in_the_tables_of_their_times(service: TableServiceClient, prefix: str) -> None:
    clock = Clock()
    logins = logins_of(service, prefix, clock)
    assert logins.prepare(ahead=1) == [f"{prefix}D20140731", f"{prefix}D20140801"]
    for number in range(4):
        clock.now = NOON + number * DAY
        logins.insert(Login("jones", number), clock.now)
        logins.insert(Login("smith", number), clock.now)
    with pytest.raises(Exists):
        logins.insert(Login("jones", 3), clock.now)
    e = columns(Login)
    found = list(logins.between(NOON + DAY, NOON + 2 * DAY, e.user == "jones"))
    assert found == [Login("jones", 1), Login("jones", 2)]
    assert len(list(logins.between(NOON - 9 * DAY, NOON + 9 * DAY, scan=True))) == 8
    with pytest.raises(QueryError):
        list(logins.between(NOON, NOON))
    assert logins.at(NOON).get(Login("jones", 0)) == Login("jones", 0)


def test_expire_drops_exactly_what_is_over(service: TableServiceClient, prefix: str) -> None:
    clock = Clock()
    logins = logins_of(service, prefix, clock)
    logins.prepare(ahead=3)
    others = {"D2014073", "D20140199", "D201407310", "H2014073100", "D", "xD20140731", "D99991231"}
    for each in others:
        service.create_table(prefix + each)
    clock.now = datetime(2014, 8, 4, tzinfo=UTC) - timedelta(microseconds=1)
    logins.insert(Login("jones", 1), datetime(2014, 8, 1, tzinfo=UTC))
    assert logins.expire() == [f"{prefix}D20140731"]
    clock.now += timedelta(microseconds=1)
    with pytest.raises(PeriodExpired):
        logins.insert(Login("jones", 2), datetime(2014, 8, 1, 23, tzinfo=UTC))
    assert logins.expire() == [f"{prefix}D20140801"]
    assert logins.expire() == []
    assert tables(service, prefix) == others | {"D20140802", "D20140803"}
    assert logins.names() == [f"{prefix}D20140802", f"{prefix}D20140803"]
    assert list(logins.between(NOON, NOON + 9 * DAY, scan=True)) == []
    assert logins_of(service, prefix, clock, "hour").expire() == [f"{prefix}H2014073100"]


def test_the_rows_of_all_periods_are_audited(service: TableServiceClient, prefix: str) -> None:
    logins = Periods(service, prefix, Login, keep=5 * DAY, runtime=Runtime(utc_now=Clock()))
    for day in (NOON, NOON - DAY):
        logins.insert(Login("jones", 1), day)
    assert list(audit(*logins.tables())) == []
    logins.at(NOON - DAY).client.create_entity({"PartitionKey": "jones", "RowKey": "no number"})
    found = [(each.kind, each.table, each.key.row_key) for each in audit(*logins.tables())]
    assert found == [(UNREADABLE, f"{prefix}D20140730", "no number")]


def test_a_table_that_is_dropped_while_it_is_read_has_no_entities(service: TableServiceClient, prefix: str) -> None:
    clock = Clock()
    logins = logins_of(service, prefix, clock)
    logins.prepare(ahead=2)
    for number in range(3):
        logins.insert(Login("jones", number), NOON + number * DAY)
    found = logins.between(NOON, NOON + 9 * DAY, scan=True)
    assert next(found) == Login("jones", 0)
    service.delete_table(f"{prefix}D20140801")
    assert list(found) == [Login("jones", 2)]


@pytest.mark.parametrize("wrong", ["", "1Logins", "Log_ins", "L" * 55, "Lögins"])
def test_a_prefix_is_rejected_that_makes_no_name(service: TableServiceClient, wrong: str) -> None:
    with pytest.raises(ValueError, match="letters and digits"):
        Periods(service, wrong, Login, keep=DAY)
    assert len(Names("L" * 54, "day").at(NOON).name) == 63


def test_every_fault_of_a_drop_and_of_a_creation(service: TableServiceClient, prefix: str) -> None:
    number = 0

    def attempt(fault: FaultAt) -> None:
        nonlocal number
        number += 1
        clock = Clock()
        mine = f"{prefix}N{number}"
        runtime = Runtime(failpoints=fault, utc_now=clock)
        failing = Periods(service, mine, Login, keep=2 * DAY, runtime=runtime, policy=QUICK)
        working = logins_of(service, mine, clock)
        try:
            assert len(failing.prepare(ahead=1)) == 2
        except Crash:
            working.prepare(ahead=1)
        assert tables(service, mine) == {"D20140731", "D20140801"}
        clock.now = datetime(2014, 8, 3, 12, tzinfo=UTC)
        try:
            assert failing.expire() == [f"{mine}D20140731"]
        except Crash:
            working.expire()
        assert tables(service, mine) == {"D20140801"}

    quick = [each.fault.name for each in every_fault(attempt)]
    assert len(quick) >= 6 * 4


async def test_asynchronous_programs_have_the_same(connection_string: str, prefix: str) -> None:
    clock = Clock()
    async with AsyncTableServiceClient.from_connection_string(connection_string) as service:
        logins = AsyncPeriods(service, prefix, Login, keep=DAY, runtime=Runtime(utc_now=clock))
        await logins.insert(Login("jones", 1), NOON)
        assert await logins.prepare(0) == [f"{prefix}D20140731"] == await logins.names()
        assert [each async for each in logins.between(NOON, NOON, scan=True)] == [Login("jones", 1)]
        assert [each.client.table_name for each in await logins.tables()] == await logins.names()
        clock.now = NOON + 2 * DAY
        assert await logins.expire() == [f"{prefix}D20140731"]
        with pytest.raises(PeriodExpired):
            await logins.insert(Login("jones", 1), NOON)


def test_a_day_is_no_time() -> None:
    with pytest.raises(AttributeError):
        Names("L", "day").at(date(2014, 7, 31))  # type: ignore[arg-type] # as a wrong program does
