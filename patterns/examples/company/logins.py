"""Login requests in a table for each day: a day is deleted at once."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from azure.data.tables import TableServiceClient

from lazulite_patterns.effects.ambient import Ambient
from lazulite_patterns.entities import Partition, Row, entity
from lazulite_patterns.entities.conditions import columns
from lazulite_patterns.keys import reverse_ticks
from lazulite_patterns.shapes import Periods

DAYS = [datetime(2014, 7, day, 8, tzinfo=UTC) for day in (29, 30, 31)]


@entity()
@dataclass(frozen=True)
class Login:
    """A login request of a user; the newest ones are first."""

    user: Annotated[str, Partition()]
    time: Annotated[datetime, Row(reverse_ticks())]
    success: bool = True


def opened(service: TableServiceClient, today: datetime = DAYS[-1]) -> Periods[Login]:
    """Return the login requests, by the clock of a day."""
    ambient = Ambient(utc_now=lambda: today)
    return Periods(service, "Logins", Login, every="day", keep=timedelta(days=1), ambient=ambient)


def show(service: TableServiceClient) -> None:
    """Log requests of three days, read those of a user, and drop the days that are kept no longer."""
    for number, day in enumerate(DAYS):
        logins = opened(service, day)
        for user in ("ann", "bob")[: number + 1]:
            logins.insert(Login(user, day), day)
    e = columns(Login)
    print("logins of bob:", [f"{each.time:%d %B}" for each in logins.between(DAYS[0], DAYS[-1], e.user == "bob")])
    print("dropped:", logins.expire())
    print("days of logins:", logins.names())
