"""Login requests in a table for each day: a day is deleted at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from azure.data.tables import TableServiceClient

from lazulite_patterns.shapes import Tail

FIRST = datetime(2014, 7, 29, 8, tzinfo=UTC)
DAYS = [FIRST + timedelta(days=number) for number in range(3)]


def table_of(day: datetime) -> str:
    """Return the name of a day's table."""
    return f"Logins{day:%Y%m%d}"


@contextmanager
def opened(service: TableServiceClient, day: datetime) -> Iterator[Tail]:
    """Yield the log of a day."""
    with service.get_table_client(table_of(day)) as table:
        yield Tail(table)


def show(service: TableServiceClient) -> None:
    """Log requests of three days, and delete the oldest one."""
    for number, day in enumerate(DAYS):
        service.create_table_if_not_exists(table_of(day))
        with opened(service, day) as logins:
            for user in ("ann", "bob")[: number + 1]:
                logins.append(user, {"Success": True}, day)
    service.delete_table(table_of(DAYS[0]))
    left = sorted(each.name for each in service.list_tables() if each.name.startswith("Logins"))
    print("days of logins:", left)
