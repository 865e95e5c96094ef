"""A value that the service would reject is rejected by each shape before a request is sent; the message names it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.data.tables import EntityProperty, TableClient
from azure.storage.blob import ContainerClient

from lazulite_patterns import EntityValueError
from lazulite_patterns.bulk import load
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.shapes import Fat, Large, Tail, Wide
from lazulite_patterns.streams import Event, Stream
from lazulite_patterns.table.table import Table

KEY = EntityKey("p", "r")
WRONG = EntityProperty(1, "Edm.Boolean")
VALUES = [[1], datetime(1500, 1, 1, tzinfo=UTC), 2**40, EntityProperty("x", "Edm.Guid"), WRONG]


class NoWrites:
    """Failpoints: only reads are sent."""

    def before(self, effect: Effect[object]) -> None:
        assert type(effect).__name__ in {"Read", "Page", "NewId", "Now", "UtcNow", "Random"}

    def after(self, effect: Effect[object]) -> None: ...


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_rejected_before_a_request(
    table_client: TableClient, container_client: ContainerClient, value: object
) -> None:
    runtime = Runtime(failpoints=NoWrites())
    table = Table(table_client, Bag, runtime=runtime)
    bag = Bag(PartitionKey="p", RowKey="r", Wrong=value)
    calls: list[Callable[[], Any]] = [
        lambda: table.insert(bag),
        lambda: table.merge(KEY, Wrong=value),
        lambda: Wide(table_client, runtime=runtime).upsert(KEY, {"Wrong": value}),
        lambda: Fat(table_client, runtime=runtime).upsert(KEY, {"Wrong": value, "Photo": bytes(2_000_000)}),
        lambda: Tail(table_client, runtime=runtime).append("p", {"Wrong": value}),
        lambda: Stream(table_client, "p", runtime=runtime).append([Event({"Wrong": value})]),
        lambda: Large(table, container_client, "photo").insert(bag, b"photo"),
    ]
    for call in calls:
        with pytest.raises(EntityValueError, match=r"\.Wrong: "):
            call()


def test_a_load_goes_on_after_rows_with_wrong_values(table_client: TableClient) -> None:
    rows = [Bag(PartitionKey="p", RowKey=str(number), Wrong=value) for number, value in enumerate(VALUES)]
    report = load(Table(table_client, Bag), [*rows, Bag(PartitionKey="p", RowKey="good")])
    assert [each.number for each in report.failures] == list(range(len(VALUES)))
    assert [each["RowKey"] for each in table_client.list_entities()] == ["good"]
