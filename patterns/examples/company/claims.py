"""Expense claims: the newest ones first."""

from datetime import UTC, datetime, timedelta

from azure.data.tables import TableServiceClient

from lazulite_patterns import Tail

NOON = datetime(2014, 7, 31, 12, tzinfo=UTC)


def show(service: TableServiceClient) -> None:
    """Append claims, and read the newest ones."""
    claims = Tail(service.create_table("Claims"))
    for number in range(5):
        claims.append("000100", {"Amount": 10 * number}, NOON + timedelta(hours=number))
    print("newest claims:", [each.properties["Amount"] for each in claims.latest("000100", 2)])
    print("settled:", claims.trim("000100", before=NOON + timedelta(hours=3)), "claims")
