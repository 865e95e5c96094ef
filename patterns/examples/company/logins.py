"""Login requests in a table for each day: a day is deleted at once."""

from datetime import UTC, datetime, timedelta

from azure.data.tables import TableServiceClient

from lazulite_patterns import Column, Periods, column, entity, partition, reverse_ticks, row
from lazulite_patterns.effects.runtime import Runtime

DAYS = [datetime(2014, 7, day, 8, tzinfo=UTC) for day in (29, 30, 31)]


@entity
class Login:
    """A login request of a user; the newest ones are first."""

    user: Column[str] = partition()
    time: Column[datetime] = row(reverse_ticks())
    success: Column[bool] = column(default=True)


def opened(service: TableServiceClient, today: datetime = DAYS[-1]) -> Periods[Login]:
    """Return the login requests, by the clock of a day."""
    runtime = Runtime(utc_now=lambda: today)
    return Periods(service, "Logins", Login, every="day", keep=timedelta(days=1), runtime=runtime)


def show(service: TableServiceClient) -> None:
    """Log requests of three days, read those of a user, and drop the days that are kept no longer."""
    for number, day in enumerate(DAYS):
        logins = opened(service, day)
        for user in ("ann", "bob")[: number + 1]:
            logins.insert(Login(user, day), day)
    print("logins of bob:", [f"{each.time:%d %B}" for each in logins.between(DAYS[0], DAYS[-1], Login.user == "bob")])
    print("dropped:", logins.expire())
    print("days of logins:", logins.names())
