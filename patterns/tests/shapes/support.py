"""What the tests of shapes share."""

from datetime import UTC, datetime, timedelta

from azure.data.tables import TableClient

from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.failpoints import Failpoints
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.outcomes import Policy
from lazulite_patterns_simulation import Fault, FaultAt

QUICK = Policy(first_wait_seconds=0.001)


def later() -> datetime:
    """Return a time after the grace."""
    return datetime.now(UTC) + timedelta(seconds=700)


def rows(client: TableClient) -> list[str]:
    """Return the RowKeys of a table."""
    return [each["RowKey"] for each in client.list_entities(select=["RowKey"])]


def empty(client: TableClient) -> None:
    """Delete all entities."""
    for each in list(client.list_entities(select=["PartitionKey", "RowKey"])):
        client.delete_entity(each)


def counting() -> FaultAt:
    """Return failpoints that count effects."""
    return FaultAt(-1, Fault.BUSY)


def driver(client: TableClient, fault: Failpoints | None = None) -> Driver:
    """Return a driver that does not wait, after the grace, with a fault."""
    runtime = Runtime(failpoints=fault or counting(), utc_now=later)
    return Driver({client.table_name: client}, runtime, lambda _: None)
