"""An entity near 1 MiB is divided where the service rejects one row: what the library adds is counted."""

import pytest
from azure.data.tables import TableClient

from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.limits import ENTITY_BYTES_MAX, entity_size
from lazulite_patterns.shapes import Fat, Wide

from .support import rows

KEY = EntityKey("p", "r")


def bag(less: int) -> dict[str, object]:
    """Return properties that have so many bytes less than an entity, with the keys `p` and `r!00`."""
    keys = {"PartitionKey": "p", "RowKey": "r!00"}
    properties: dict[str, object] = {f"P{number:02d}": bytes(65_536) for number in range(15)}
    room = ENTITY_BYTES_MAX - less - entity_size({**keys, **properties, "Rest": b""})
    return {**properties, "Rest": bytes(room)}


@pytest.mark.parametrize("shape", [Wide, Fat])
def test_a_row_has_room_for_what_the_library_adds(table_client: TableClient, shape: type[Wide | Fat]) -> None:
    table = shape(table_client)
    for _ in range(4):
        table.upsert(KEY, {})  # The ids of four writes are in the row: as many as there can be.
    counts = []
    for less in (0, 50, 90, 130, 170, 210, 250, 400):
        table.upsert(KEY, bag(less))
        assert table.get(KEY) == {"PartitionKey": "p", "RowKey": "r", **bag(less)}
        counts.append(len(rows(table_client)))
    assert counts[-1] == 1, "one row is enough"
    if shape is Wide:
        assert counts[0] == 2


def test_a_head_has_room_for_its_chunks(table_client: TableClient) -> None:
    fat = Fat(table_client)
    for _ in range(4):
        fat.upsert(KEY, {})
    counts = []
    for length in range(1_047_600, 1_048_200, 40):
        fat.upsert(KEY, {"Photo": bytes(length)})
        counts.append(len(rows(table_client)))
    assert counts[0] == 1
    assert counts[-1] == 3
    assert counts == sorted(counts)
